package export

import (
	"fmt"
	"time"
)

// Class says whose code a frame is. It decides colours and marks.
type Class uint8

const (
	ClassManaged   Class = iota // methods the CLR compiled or loaded precompiled
	ClassNative                 // native code that is not the runtime's
	ClassRuntime                // the .NET runtime's own native code (libcoreclr, libclrjit, libSystem.Native, ...)
	ClassStub                   // code the CLR made that is no method: IL stub, precode, helper
	ClassGap                    // frames are missing here; Frame.Name is the reason
	ClassType                   // no frame: the type that was allocated or thrown there, or what an exception said
	ClassKernel                 // the kernel of the system
	ClassUnsampled              // no frame: processor time without samples, and its cause
	numClasses
)

var classNames = [numClasses]string{"managed", "native", "runtime", "stub", "gap", "type", "kernel", "unsampled"}

func (c Class) String() string {
	if c < numClasses {
		return classNames[c]
	}
	return "class?"
}

// Frame is one function, or one address of it, that stands in stacks.
type Frame struct {
	Name        string // readable name; of a gap, the reason
	Module      string // base name of the image, "" if none
	ModuleIndex int32  // into Profile.Modules, -1 = none
	Addr        uint64 // address looked up, 0 = unknown (managed methods)
	File        string // source file, "" = not known
	Line        int    // of it, 0 = not known
	Class       Class
	Doubtful    bool // found by a guess (unwind.Trust.Doubtful)
}

// Module is a mapped image.
type Module struct {
	Path       string
	BuildID    string // hexadecimal, "" = none
	Start, End uint64 // mapped addresses, Start <= a < End
	Offset     uint64 // in the file, of Start
}

// Thread is a thread that has samples, or with the ID 0 all that have none.
type Thread struct {
	ID   int // the kernel's thread id, 0 = threads without samples
	Name string
}

// Event is what a stack was taken of: time, by sampling, or something the runtime
// reported as it happened.
type Event uint8

const (
	NoEvent         Event = iota // samples of time
	EventWait                    // waiting for a wait handle, or in Monitor.Wait
	EventLock                    // waiting for a lock that another thread had
	EventAllocation              // of memory
	EventException               // thrown
	NumEvents
)

var eventNames = [NumEvents]string{"", "wait", "lock", "allocation", "exception"}

func (e Event) String() string { return eventNames[e%NumEvents] }

// Stack is one distinct stack of one thread, with how often it was seen.
type Stack struct {
	Thread    int     // index into Profile.Threads
	Frames    []int32 // indices into Profile.Frames, leaf first
	Count     int64   // samples, >= 0
	WallNanos int64   // wall time the samples stand for, >= 0; 0 = not measured
	CPUNanos  int64   // CPU time the samples stand for, >= 0; 0 = not measured
	CPUCount  int64   // of Count, samples with CPU time; 0 with CPUNanos > 0 and Count > 0: all of Count
	Complete  bool
	Gap       string // why the stack is not complete, "" if it is

	// Of an event, whose times are Count. WallNanos and CPUNanos are 0 then.
	Event   Event
	Sum     int64  // nanoseconds of waits and locks, bytes that allocations stand for
	Longest int64  // nanoseconds of the longest wait
	Open    bool   // the wait had not ended: Sum is a lower bound
	Monitor bool   // a wait in Monitor.Wait, or what is built on it
	Owner   int    // thread that had the lock, 0 = not known
	Type    string // that was allocated or thrown
	Message string // of an exception
}

// Wait is one wait or lock.
type Wait struct {
	Stack int // index into Profile.Stacks, which says of what
	Start time.Time
	Nanos int64
}

// Profile is a whole recording. Writers do not change it.
type Profile struct {
	Frames   []Frame
	Modules  []Module
	Threads  []Thread
	Stacks   []Stack
	Start    time.Time
	Duration time.Duration
	RateHz   float64 // samples per second and thread, 0 = unknown
	Command  []string
	Waits    []Wait // the longest waits and locks one by one, by when they began
	Runtime  string // such as ".NET 9.0.5", "" = unknown
	Stats    Stats
}

// Stats are the figures of the recording itself. They are what the recorder
// counted, and may be larger than the sums over Stacks if samples were lost.
type Stats struct {
	Samples   int64            // stacks taken
	Complete  int64            // of them, without a gap
	Gaps      map[string]int64 // incomplete samples by reason
	Suspended Quantiles        // time the runtime, or one thread, stood still per suspension
	Parts     []Part           // what it was spent on, in order; nil = not known
	Tries     []Tries          // suspensions of single threads by what came of them, most frequent first
	Retries   int64            // SuspendRuntime calls repeated because a suspension was in progress
	Lost      int64            // samples taken but not kept
	Unlisted  int64            // waits that are not in Profile.Waits: they were shorter
	Empty     string           // why there are no samples, "" if there are some
	Notes     []string         // one line each, for the user
	ExitNote  string           // how the command ended, "" if unremarkable
	Way       string           // how samples were taken: "probe", "snapshot", "" = unknown
	WayWhy    string           // what that means, and why not another way
	Taken     []string         // figures of that way, one line each
	Clock     *Clock           // of CPU samples; nil = unknown
	CPU       *CPUTime         // where processor time is; nil = no clock of the processes is known
	Counters  map[string]int64 // the same for programs; nil = none
	Events    []EventStats     // the runtime's events that were recorded, by kind; nil = none were asked for
}

// EventStats sum up the events of a kind.
type EventStats struct {
	Event    Event
	Seen     int64 // that happened
	Count    int64 // with their stack; lower bounds among them
	Complete int64 // of Count, without a gap
	Sum      int64 // of Count: nanoseconds or bytes
	Longest  int64 // nanoseconds
	Open     int64 // of Count, had not ended
}

// Quantiles sum up a distribution of times.
type Quantiles struct {
	Count         int64 // values seen; 0 = the others mean nothing
	P50, P99, Max time.Duration
}

// Part is a share of the time of a suspension.
type Part struct {
	Name string
	Time Quantiles
}

// Tries counts suspensions of single threads by what came of them: the verdict on
// our own walk, and what the CLR answered to DoStackSnapshot.
type Tries struct {
	Verdict, Result string
	Count           int64
}

// threadCount is how many threads have samples.
func (p *Profile) threadCount() (n int64) {
	for i := range p.Threads {
		if p.Threads[i].ID != 0 {
			n++
		}
	}
	return n
}

// IndexError is returned by writers for a profile whose parts do not fit.
type IndexError struct {
	What  string // what refers, such as "stack 3 frame 0"
	Index int    // to which index
	Limit int    // of how many
}

func (e *IndexError) Error() string {
	return fmt.Sprintf("profile: %s refers to index %d of %d", e.What, e.Index, e.Limit)
}

// Check returns an *IndexError for the first index that is out of range and
// nil if there is none.
func (p *Profile) Check() error {
	for i := range p.Frames {
		if m := p.Frames[i].ModuleIndex; m < -1 || int(m) >= len(p.Modules) {
			return &IndexError{fmt.Sprintf("frame %d module", i), int(m), len(p.Modules)}
		}
	}
	for i := range p.Stacks {
		if err := p.checkStack(i); err != nil {
			return err
		}
	}
	for i := range p.Waits {
		if s := p.Waits[i].Stack; s < 0 || s >= len(p.Stacks) {
			return &IndexError{fmt.Sprintf("wait %d", i), s, len(p.Stacks)}
		}
	}
	return nil
}

func (p *Profile) checkStack(i int) error {
	s := &p.Stacks[i]
	if s.Thread < 0 || s.Thread >= len(p.Threads) {
		return &IndexError{fmt.Sprintf("stack %d thread", i), s.Thread, len(p.Threads)}
	}
	for j, f := range s.Frames {
		if f < 0 || int(f) >= len(p.Frames) {
			return &IndexError{fmt.Sprintf("stack %d frame %d", i, j), int(f), len(p.Frames)}
		}
	}
	return nil
}
