package vm

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// EnableStackSnapshot is COR_PRF_ENABLE_STACK_SNAPSHOT. Without it in the event mask,
// DoStackSnapshot refuses.
const EnableStackSnapshot = 0x10000000

// Callbacks are the callbacks of a profiler. The CLR calls them on the thread that caused the event.
type Callbacks struct {
	ThreadDestroyed          func(a *sched.Actor, t *Thread)
	RuntimeThreadSuspended   func(a *sched.Actor, t *Thread) // by the thread itself only
	RuntimeSuspendFinished   func(a *sched.Actor)
	GarbageCollectionStarted func(a *sched.Actor)
	ModuleLoadStarted        func(a *sched.Actor)
}

// noTrigger calls a callback that must not cause a collection. While it runs, the CLR refuses calls of
// the actor that might cause one. name is the callback's name in the trace.
func (c *CLR) noTrigger(a *sched.Actor, name string, call func()) {
	c.refusing[a]++
	a.Note("callback %s", name)
	call()
	c.refusing[a]--
}

// CLR is one runtime in one process.
type CLR struct {
	Variant   Variant
	Arch      image.Arch
	Codes     Codes
	EventMask uint32
	Started   bool // the execution engine has started
	Detaching bool // the profiler is being detached
	NoGC      bool // the collector has not been initialised
	Threads   []*Thread
	Callbacks Callbacks

	ThreadStore *sched.Lock // held by the thread that stops the runtime
	CodeHeap    *sched.Lock // the writer's side of the JIT manager's lookup lock
	PerThread   *sched.Lock // taken by a thread's first call of the profiling API
	Unwinder    *sched.Lock // Linux: the mutex inside the CLR's own libunwind

	// Inverted is the lock of the system's table of images' functions. Loading, unloading, and a
	// look-up take it. nil: the world does not simulate this lock.
	Inverted *sched.Lock

	// Wait calls block, in which t waits for the end of a suspension. Meanwhile it keeps the runtime's
	// frames on t's stack. nil: block is called without frames. resumable is true after a hijack or a
	// redirection.
	Wait func(a *sched.Actor, t *Thread, resumable bool, block func())

	HijackStub uint64 // target of a hijacked return; 0: returns are not hijacked

	// Redirect makes a stopped thread at ip in managed code continue in the CLR's stub, by
	// writing its context. It returns false, and changes nothing, if the code at ip is not fully
	// interruptible. If Redirect is nil, no code is, and the CLR hijacks returns instead.
	Redirect func(t *Thread, ip uint64) bool

	suspender *sched.Actor // the actor that stops the runtime, or has stopped it
	stopped   bool
	profiler  bool // the profiler stopped it, by SuspendRuntime
	known     map[*sched.Actor]bool
	refusing  map[*sched.Actor]int // per actor: callbacks under way that must not cause a collection
}

// New returns a started CLR. Its event mask enables stack snapshots, as a profiler would set it.
func New(v Variant, a image.Arch) *CLR {
	return &CLR{
		Variant: v, Arch: a, EventMask: EnableStackSnapshot, Started: true,
		ThreadStore: newLock("CLR thread store"),
		CodeHeap:    newLock("CLR code heap"),
		PerThread:   newLock("CLR per-thread initialisation"),
		Unwinder:    newLock("CLR libunwind"),
		known:       map[*sched.Actor]bool{},
		refusing:    map[*sched.Actor]int{},
	}
}

// Thread returns the thread of an id, nil if the CLR knows none. A dead thread
// is found: its object lives as long as a caller may hold its id.
func (c *CLR) Thread(id clr.ThreadID) *Thread {
	for _, t := range c.Threads {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// Of returns the CLR's thread of an actor, nil if it has never run managed code.
func (c *CLR) Of(a *sched.Actor) *Thread {
	for _, t := range c.Threads {
		if t.Actor == a {
			return t
		}
	}
	return nil
}

// Destroy ends t. It calls the profiler's callback on the dying thread, and the callback may block.
func (c *CLR) Destroy(a *sched.Actor, t *Thread) {
	if f := c.Callbacks.ThreadDestroyed; f != nil {
		a.Note("callback ThreadDestroyed")
		f(a, t)
	}
	t.Dead = true
	a.Note("its ThreadID is dead from here on")
	a.Yield("thread destroyed")
}

// LoadModule calls the profiler's ModuleLoad callbacks on actor a.
func (c *CLR) LoadModule(a *sched.Actor) {
	if f := c.Callbacks.ModuleLoadStarted; f != nil {
		a.Note("callback ModuleLoadStarted")
		f(a)
	}
}

// initialise simulates the first call of the profiling API on a thread that the CLR does not know. The CLR
// creates state for the thread under a lock.
func (c *CLR) initialise(a *sched.Actor) {
	if c.known[a] || c.Of(a) != nil {
		return
	}
	a.Lock(c.PerThread)
	a.Yield("per-thread state is set up")
	c.known[a] = true
	a.Unlock(c.PerThread)
}

// Jit compiles a method. It holds the writer lock of the code heap. It changes the tables of dynamic
// functions under os, a lock of the operating system.
func (c *CLR) Jit(a *sched.Actor, os *sched.Lock) {
	a.Lock(c.CodeHeap)
	if os != nil {
		a.Lock(os)
		a.Yield("function table grows")
		a.Unlock(os)
	}
	a.Unlock(c.CodeHeap)
}

// Adopt adds t, a thread that will run managed code for the first time, to the CLR's threads.
func (c *CLR) Adopt(t *Thread) *Thread {
	t.Hijack = &sched.Lock{Name: "hijack lock of " + t.Actor.Name()}
	c.Threads = append(c.Threads, t)
	return t
}

func newLock(name string) *sched.Lock { return &sched.Lock{Name: name} }
