package waits

// Kind is what was waited for.
type Kind uint8

const (
	Lock    Kind = iota // a Monitor another thread had
	Handle              // a wait handle: mutex, event, semaphore, a thread's end
	Monitor             // Monitor.Wait, and what is built on it: tasks, slim events
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

// State says how far a wait's duration can be trusted.
type State uint8

const (
	Complete   State = iota
	BegunEarly       // it had begun before the trace: a lower bound
	StillOpen        // it had not ended with the trace: a lower bound
	Unreliable       // events of its thread are missing: Nanos is 0
	numStates
)

var stateNames = [numStates]string{"complete", "begun-before", "still-open", "unreliable"}

func (s State) String() string { return stateNames[s%numStates] }

// StackID names a stack of an Analysis.
type StackID int32

// LostStack is the stack of waits whose stack is not in the trace; NoStack that
// of waits that have none.
const (
	NoStack   StackID = 0
	LostStack StackID = -1
)

// Wait is one wait of one thread.
type Wait struct {
	Kind        Kind
	State       State
	Depth       uint8  // open waits of the thread around it; 0 = top-level
	Differs     bool   // the runtime's own figure is more than 1 ms and 5 % off
	Blocked     bool   // a lock for which the thread was put to sleep
	Thread      uint64 // the system's id
	Process     uint64 // where a trace holds several, else 0
	Start, Stop uint64 // ticks
	Nanos       int64
	Reported    int64 // what the runtime itself says of a lock, 0 = nothing
	Stack       StackID
	Native      int32 // frames that were found from outside, see Leaves and Whole; 0 = none
	LockID      uint64
	Object      uint64
	Owner       uint64 // thread that had the lock at Start; 0 = not known
}
