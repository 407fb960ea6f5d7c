package export

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Class is the kind of code of a frame. It decides colors and marks.
type Class uint8

const (
	ClassManaged   Class = iota // managed methods, compiled at run time or precompiled
	ClassNative                 // native code outside the runtime
	ClassRuntime                // the .NET runtime's own native code (libcoreclr, libclrjit, libSystem.Native, ...)
	ClassStub                   // code that the CLR generated: IL stub, precode, helper
	ClassGap                    // frames are missing here; Frame.Name is the reason
	ClassType                   // not code: an allocated or thrown type, or the message of an exception
	ClassKernel                 // the kernel
	ClassUnsampled              // not code: CPU time without samples, and its cause
	ClassResumer                // a frame that only resumed the async method that it called
	ClassAsync                  // on no stack: an async method that waits for what runs
	numClasses
)

var classNames = [numClasses]string{"managed", "native", "runtime", "stub", "gap", "type", "kernel",
	"unsampled", "resumer", "async"}

func (c Class) String() string {
	if c < numClasses {
		return classNames[c]
	}
	return "class?"
}

// Frame is one function, or one address in a function.
type Frame struct {
	Name        string // readable name; for a gap, the reason
	Module      string // base name of the image, "" if none
	ModuleIndex int32  // into Profile.Modules, -1 = none
	Addr        uint64 // address looked up, 0 = unknown (managed methods)
	File        string // source file, "" if unknown
	Line        int    // line in File, 0 if unknown
	Class       Class
	Doubtful    bool // found by a guess (unwind.Trust.Doubtful)
}

// Unnamed reports whether the name of a native frame is only its place in its module.
func (f *Frame) Unnamed() bool {
	return f.ModuleIndex >= 0 && (f.Class == ClassNative || f.Class == ClassRuntime) &&
		strings.Contains(f.Name, f.Module+"+0x")
}

// Module is a mapped image.
type Module struct {
	Path       string
	BuildID    string // hexadecimal, "" = none
	Start, End uint64 // mapped addresses, Start <= a < End
	Offset     uint64 // offset of Start in the file
}

// Thread is a thread with samples. ID 0 means all threads without samples.
type Thread struct {
	ID   int    `json:"id"` // the kernel's thread id, 0 = threads without samples
	Name string `json:"name"`
}

// Event is the kind of a stack: a sample of time, or an event of the runtime.
type Event uint8

const (
	NoEvent         Event = iota // samples of time
	EventWait                    // waiting for a wait handle, or in Monitor.Wait
	EventLock                    // waiting for a lock that another thread held
	EventAllocation              // memory was allocated
	EventException               // an exception was thrown
	EventPause                   // the runtime suspended all threads for a garbage collection
	EventJIT                     // a method was compiled
	EventQueue                   // a work item waited in the thread pool's queue
	EventStarved                 // the thread pool added a thread, because no thread took queued work
	EventOther                   // any other event; Stack.Type is its provider and name
	NumEvents
)

var eventNames = [NumEvents]string{"", "wait", "lock", "allocation", "exception", "GC pause", "JIT method",
	"queued item", "starvation", "event"}

func (e Event) String() string { return eventNames[e%NumEvents] }

// Stack is one distinct stack of one thread and its number of samples.
type Stack struct {
	Thread    int     // index into Profile.Threads
	Frames    []int32 // indices into Profile.Frames, leaf first
	Count     int64   // samples, >= 0
	WallNanos int64   // wall time of the samples, >= 0; 0 = not measured
	CPUNanos  int64   // CPU time of the samples, >= 0; 0 = not measured
	CPUCount  int64   // of Count, samples with CPU time; 0 with CPUNanos > 0 and Count > 0: all of Count
	Complete  bool
	Gap       string // why the stack is incomplete, "" if it is complete

	// For an event; Count is then the number of events, and WallNanos and CPUNanos are 0.
	Event   Event
	Sum     int64  // nanoseconds of waits, locks, pauses, compilations, and queues, bytes of allocations
	Longest int64  // nanoseconds of the longest one
	Open    bool   // the wait had not ended: Sum is a lower bound
	Monitor bool   // a wait in Monitor.Wait, or in code that uses it
	Owner   int    // thread that held the lock, 0 if unknown
	Type    string // allocated or thrown type, compiled method, reason of a pause, or event
	Message string // message of an exception
}

// Sample is one sample of a stack. CPU samples of one stack share its CPUNanos equally.
type Sample struct {
	Stack int32 // index into Profile.Stacks
	At    int64 // unix nanoseconds
	Wall  int64 // nanoseconds of wall time, which end at At
	CPU   bool  // it has CPU time
	// Activity is the current one of the thread, nil if there was none or it is unknown.
	Activity *Activity
}

// Activity holds the ids of a System.Diagnostics.Activity.
type Activity struct {
	Trace [16]byte
	Span  [8]byte
}

// Wait is one event with a time: a wait, a lock, a GC pause, a compilation, a queued work item, an
// exception, or a starvation. The last two have no length.
type Wait struct {
	Stack int // index into Profile.Stacks
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
	Waits    []Wait            // the longest events with a time, sorted by start
	Samples  []Sample          // samples by time; nil = their times are unknown
	First    string            // metric shown first (see MetricNames), "" = CPU time if it was measured
	Runtime  string            // such as ".NET 9.0.5", "" = unknown
	PID      int               // of the recorded process, 0 = unknown, or several
	Resource map[string]string // OpenTelemetry's attributes, nil = unknown
	Stats    Stats
}

// WayProbe and WaySnapshot are values of Stats.Way: walks of copied stacks, or the CLR's own walks in rounds.
const WayProbe, WaySnapshot = "probe", "snapshot"

// Stats holds the figures of the recording. The recorder counted them. They may exceed the
// sums over Stacks if samples were lost.
type Stats struct {
	Samples   int64            // stacks taken
	Complete  int64            // samples without a gap
	Gaps      map[string]int64 // incomplete samples by reason
	Suspended Quantiles        // time per suspension of the runtime or of one thread
	Parts     []Part           // parts of Suspended, in order; nil = unknown
	Tries     []Tries          // suspensions of single threads by result, most frequent first
	Retries   int64            // SuspendRuntime calls repeated because a suspension was in progress
	Lost      int64            // dropped samples
	Untimed   int64            // samples that are not in Profile.Samples
	Unlisted  int64            // shorter waits, which are not in Profile.Waits
	Selection string           // what part of the recording this is, "" = all of it
	Empty     string           // why there are no samples, "" if there are some
	Notes     []string         // one line each, for the user
	ExitNote  string           // how the command ended, "" if unremarkable
	Way       string           // how samples were taken: WayProbe, WaySnapshot, another, "" = unknown
	WayWhy    string           // explanation of Way, and why no other way was used
	Taken     []string         // figures of that way, one line each
	Clock     *Clock           // of CPU samples; nil = unknown
	CPU       *CPUTime         // where CPU time is; nil = no clock of the processes is known
	Counters  map[string]int64 // counters of the engine by name; nil = none
	Events    []EventStats     // recorded events of the runtime, by kind; nil = none were requested
}

// EventStats holds the totals of one kind of event.
type EventStats struct {
	Event    Event
	Seen     int64 // all events
	Count    int64 // events with a stack, including lower bounds
	Complete int64 // of Count, without a gap
	Sum      int64 // nanoseconds of Count, or bytes of Seen
	Longest  int64 // nanoseconds
	Open     int64 // of Count, not ended
}

// Quantiles summarizes a distribution of times.
type Quantiles struct {
	Count int64         `json:"count"` // number of values; if 0, the other fields are unset
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

// Part is a share of the time of a suspension.
type Part struct {
	Name string `json:"name"`
	Quantiles
}

// Tries counts suspensions of single threads by result: the verdict on our own walk, and the
// HRESULT of DoStackSnapshot.
type Tries struct {
	Verdict string `json:"verdict"`
	Result  string `json:"hresult"`
	Count   int64  `json:"count"`
}

// threadCount returns the number of threads, without the one for all threads without samples.
func (p *Profile) threadCount() (n int64) {
	for i := range p.Threads {
		if p.Threads[i].ID != 0 {
			n++
		}
	}
	return n
}

// IndexError describes an invalid index in a profile.
type IndexError struct {
	What  string // where the index is, such as "stack 3 frame 0"
	Index int    // the invalid index
	Limit int    // number of valid indices
}

func (e *IndexError) Error() string {
	return fmt.Sprintf("profile: %s refers to index %d of %d", e.What, e.Index, e.Limit)
}

// Check returns an *IndexError for the first index that is out of range, or nil.
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
	for i := range p.Samples {
		if s := int(p.Samples[i].Stack); s < 0 || s >= len(p.Stacks) {
			return &IndexError{fmt.Sprintf("sample %d", i), s, len(p.Stacks)}
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

// Base returns the last part of a path of Linux or Windows.
func Base(path string) string {
	if strings.HasPrefix(path, `\\`) || len(path) > 2 && path[1:3] == `:\` || !strings.Contains(path, "/") {
		return path[strings.LastIndexByte(path, '\\')+1:]
	}
	return filepath.Base(path)
}
