package waits

// Kind is the kind of object that a thread waited for.
type Kind uint8

const (
	Lock    Kind = iota // a Monitor that another thread held
	Handle              // a wait handle: mutex, event, semaphore, a thread's end
	Monitor             // Monitor.Wait, and waits that use it: tasks, slim events
	numKinds
)

var kindNames = [numKinds]string{"lock", "wait", "monitor-wait"}

func (k Kind) String() string { return kindNames[k%numKinds] }

// Event is the runtime's name of the kind.
func (k Kind) Event() string {
	if k == Lock {
		return "Contention"
	}
	return "WaitHandleWait"
}

// State is whether a wait's duration is exact.
type State uint8

const (
	Complete   State = iota
	BegunEarly       // the wait began before the trace: a lower bound
	StillOpen        // the wait was open at the end of the trace: a lower bound
	Unreliable       // events of its thread are missing, or it has no stop: Nanos is 0
	numStates
)

var stateNames = [numStates]string{"complete", "begun-before", "still-open", "unreliable"}

func (s State) String() string { return stateNames[s%numStates] }

// StackID identifies a stack of an Analysis.
type StackID int32

// LostStack is the stack of waits whose stack is missing in the trace. NoStack is the stack of
// waits that have none.
const (
	NoStack   StackID = 0
	LostStack StackID = -1
)

// Wait is one wait of one thread.
type Wait struct {
	Kind        Kind
	State       State
	Depth       uint8  // number of enclosing waits of the thread; 0 = top-level
	Differs     bool   // the runtime's own figure is more than 1 ms and 5 % off
	Blocked     bool   // a lock for which the thread was put to sleep
	Thread      uint64 // system ID
	Process     uint64 // set if a trace has several processes, else 0
	Start, Stop uint64 // ticks
	Nanos       int64
	Reported    int64 // the runtime's own duration of a lock, 0 = none
	Stack       StackID
	Native      int32 // frames read from outside, see Leaves and Whole; 0 = none
	LockID      uint64
	Object      uint64
	Owner       uint64 // thread that held the lock at Start; 0 = unknown
}
