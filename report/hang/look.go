package hang

import (
	"fmt"
	"slices"
	"strings"
)

// Frame is a function on a stack.
type Frame struct {
	Name    string // "" if it has none
	Managed bool
}

// Lock is a lock with a certain owner.
type Lock struct {
	Kind  string // such as "monitor" or "pthread mutex"
	At    string // address of the lock
	Owner uint32 // thread that holds it, 0 if unknown
	Ended bool   // the owner ended without releasing it
	Name  string // of a type whose static constructor the owner runs, or of a mutex
}

// StaticConstructor is the Kind of a Lock that the thread holds which runs a type's static constructor.
const StaticConstructor = "static constructor"

func (l *Lock) String() string {
	switch {
	case l.Kind == StaticConstructor:
		return fmt.Sprintf("static constructor of %s at %s", l.Name, l.At)
	case l.Name != "":
		return fmt.Sprintf("%s %q at %s", l.Kind, l.Name, l.At)
	}
	return fmt.Sprintf("%s at %s", l.Kind, l.At)
}

// Thread is a thread in two snapshots.
type Thread struct {
	TID         uint32
	Name        string
	Frames      []Frame // leaf first, from the second snapshot
	Lock        Lock    // Kind is "" if it waits for none
	Ran         bool    // it used CPU time between the snapshots, or Moved is set
	Moved       bool    // its stack or its lock changed between the snapshots, or it is new
	New         bool    // it began between the snapshots
	Incomplete  bool    // frames are missing from its stack
	Cooperative bool    // in both snapshots the runtime counted it as running managed code
	Suspends    bool    // in both snapshots it was stopping all other threads, mostly for a collection
	Blocks      Wait    // what it waits for in a system call, NoWait if it is in none that waits
	Limited     bool    // that wait has a time limit; false if that is unknown
	Awaits      []Await // the tasks for which it certainly waits, and which a thread certainly runs
	Joins       uint32  // the thread whose end it waits for, 0 if none is certain
	Signal      string  // in a core, the signal that the thread crashed with
}

// Await is a task for which a thread waits, and the thread that runs it.
type Await struct {
	Task    string // name of the task or of its async method
	At      string // its address
	Runner  uint32
	Limited bool // a timer ends the wait
}

// Chain is a pending task with everything that waits for it, and the number of equal chains.
type Chain struct {
	Count   int
	Names   []string // the awaited operation, then each async method that awaits the one before it
	Queued  bool     // the awaited operation is in the queue of the thread pool
	Circle  bool     // a circle of its operations await each other, which nothing else can end
	Limited bool     // a timer ends one of its operations
	Blocked []uint32 // threads that wait for the chain
}

// Process is a process in two snapshots.
type Process struct {
	Threads    []Thread
	Chains     []Chain // from the second snapshot, the most frequent first; none if they were not read
	Processors int     // number of processors that it may use; 0 if unknown
	Queued     int     // work items in the queues of the thread pool; 0 if they could not be read
	NoneQueued bool    // the queue of the thread pool is empty; false if it could not be read
	Stopped    string  // what has stopped it, such as "a debugger (process 4711)"; "" if it runs
	Once       bool    // there is only one snapshot, so Ran is unknown
}

// Wait is the kind of wait in which a thread blocks.
type Wait uint8

// Kinds of waits.
const (
	NoWait Wait = iota // it runs, or the wait is unknown
	Idle               // a thread of the runtime, or a worker without work
	Enter              // a lock of managed code or of the C library
	ReaderWriter
	Semaphore
	Task
	Event // wait handles, events, barriers
	Pulse // Monitor.Wait
	Join
	Sleep
	Child // a child process
	Input // files, sockets, polls
	Collection
	Finalizers
)

func (w Wait) String() string {
	return [...]string{"running", "idle", "a lock", "a reader-writer lock", "a semaphore", "a task",
		"an event or a mutex", "a monitor's pulse", "the end of a thread", "time to pass",
		"a child process", "input or output", "a garbage collection", "the finalizers"}[w]
}

// known maps names of functions to the wait of a thread that is in such a function. A name that contains a
// period or ends in an underscore is a prefix. Managed functions outrank the functions that they call.
var known = []struct {
	wait  Wait
	names []string
}{
	{Task, []string{"System.Threading.Tasks.Task.Wait", "System.Threading.Tasks.Task.InternalWait",
		"System.Threading.Tasks.Task.SpinThenBlockingWait"}},
	{Semaphore, []string{"System.Threading.SemaphoreSlim.Wait", "System.Threading.Semaphore."}},
	{ReaderWriter, []string{"System.Threading.ReaderWriterLock"}},
	{Join, []string{"System.Threading.Thread.Join"}},
	{Sleep, []string{"System.Threading.Thread.Sleep"}},
	{Finalizers, []string{"System.GC.WaitForPendingFinalizers", "GCInterface_WaitForPendingFinalizers"}},
	{Collection, []string{"System.GC.Collect", "System.GC._Collect", "GCInterface_Collect"}},
	{Enter, []string{"System.Threading.Monitor.Enter", "System.Threading.Monitor.ReliableEnter",
		"System.Threading.Monitor.TryEnter", "System.Threading.Lock.", "pthread_mutex_", "__pthread_mutex_"}},
	{Event, []string{"System.Threading.WaitHandle.", "System.Threading.ManualResetEventSlim.",
		"System.Threading.CountdownEvent.", "System.Threading.Barrier."}},
	{Pulse, []string{"System.Threading.Monitor.Wait"}},
	{Child, []string{"System.Diagnostics.Process.WaitForExit", "System.Diagnostics.ProcessWaitState."}},
	// the kernel repeats these calls under another number
	{Sleep, []string{"nanosleep", "clock_nanosleep", "__clock_nanosleep", "usleep", "sleep"}},
	{Event, []string{"__futex_", "pthread_cond_timedwait", "pthread_cond_clockwait", "sem_timedwait",
		"sem_clockwait"}},
}

// ofRuntime lists functions of threads that the core library starts for itself.
var ofRuntime = []string{"System.Threading.PortableThreadPool.GateThread",
	"System.Threading.PortableThreadPool.WaitThread", "System.Threading.TimerQueue.TimerThread"}

// waitOf returns the wait in which a thread blocks, and the function that shows it: the system call and its
// function, unless a known function is on the stack. If several functions are known, the one farthest from
// the leaf decides. The search ends at the first unknown managed function outside System.Threading.
func (t *Thread) waitOf() (wait Wait, by string) {
	if wait = t.Blocks; wait != NoWait && len(t.Frames) > 0 {
		by = t.Frames[0].Name
	}
	for _, f := range t.Frames {
		if w := waitIn(f); w != NoWait {
			wait, by = w, f.Name
			continue
		}
		if f.Managed && !strings.HasPrefix(f.Name, "System.Threading.") {
			break
		}
	}
	return wait, by
}

// waitIn returns the wait of one function.
func waitIn(f Frame) Wait {
	for _, k := range known {
		for _, name := range k.names {
			whole := !strings.HasSuffix(name, ".") && !strings.HasSuffix(name, "_") &&
				!strings.Contains(name, ".")
			if whole && f.Name == name || !whole && strings.HasPrefix(f.Name, name) {
				return k.wait
			}
		}
	}
	return NoWait
}

// has reports whether a function with this name prefix is on the stack.
func (t *Thread) has(prefix string) bool {
	return slices.ContainsFunc(t.Frames, func(f Frame) bool { return strings.HasPrefix(f.Name, prefix) })
}

// worker reports whether a thread belongs to the pool; busy means that it has work.
func (t *Thread) worker() (is, busy bool) {
	return t.has("System.Threading.PortableThreadPool.WorkerThread."),
		t.has("System.Threading.ThreadPoolWorkQueue.Dispatch")
}

// Wait returns the wait in which the thread blocks, and the function that shows it.
func (t *Thread) Wait() (Wait, string) {
	wait, by := t.waitOf()
	if is, busy := t.worker(); is && !busy {
		return Idle, by
	}
	if t.Suspends {
		return Collection, by
	}
	managed := slices.ContainsFunc(t.Frames, func(f Frame) bool { return f.Managed })
	if strings.HasPrefix(t.Name, ".NET ") && !managed || slices.ContainsFunc(ofRuntime, t.has) {
		return Idle, by
	}
	if t.Lock.Kind != "" && (t.Lock.Owner != 0 || t.Lock.Ended) {
		return Enter, by
	}
	return wait, by
}

// Place returns the function that called the wait: the first managed one outside the framework's System
// namespaces, else the first managed one, else the leaf.
func (t *Thread) Place() string {
	first := ""
	for _, f := range t.Frames {
		if f.Managed && f.Name != "" {
			if !strings.HasPrefix(f.Name, "System.") && !strings.HasPrefix(f.Name, "Interop.") &&
				!strings.HasPrefix(f.Name, "Microsoft.") {
				return f.Name
			}
			if first == "" {
				first = f.Name
			}
		}
	}
	if first == "" && len(t.Frames) > 0 {
		first = t.Frames[0].Name
	}
	return first
}
