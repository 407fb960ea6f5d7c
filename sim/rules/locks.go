package rules

import (
	"strings"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

var core22 = sim.Setup{Variant: vm.Core22Windows}

// small bounds the explorations: every order with so many preemptions.
func small(preemptions int) sched.ExploreOptions {
	return sched.ExploreOptions{Options: sched.Options{Preemptions: preemptions, MaxSteps: 600}}
}

// locks are the rules about what a suspended thread may own.
func locks() []*Rule {
	return []*Rule{windowLock(), osUnwinder(), snapshotLock(), refused()}
}

// Lock is what the rule window-lock is about: the same world for each, with
// another lock.
type Lock struct {
	Name, Line, Text, Source string
	Enforced, Provoked       string

	says string // what the deadlock names
	in   string // the function in which the target owns it
	of   func(w *sim.World) *sched.Lock
}

// windowLocks are the locks that were met, in the order to read them.
func windowLocks() []Lock {
	return []Lock{
		{Name: "heap", Line: "Between suspend and resume, allocate nothing.",
			Text:   "The suspended thread may stand inside the allocator, with the heap's lock. A sampler that allocates then waits for a lock whose owner it has stopped itself, and nobody is left to resume it.",
			Source: "Broman, problem 1; seen: HeapAlloc deadlocks after 978 suspensions",
			says:   "process heap", in: sim.HeapAlloc, of: func(w *sim.World) *sched.Lock { return w.Heap }},
		{Name: "loader", Line: "Between suspend and resume, call nothing that takes the loader's lock.",
			Text:   "GetModuleHandleEx, GetProcAddress, LoadLibrary and the first call of a delay-loaded function take the loader's lock. A target stopped inside LoadLibrary owns it; soon every thread of the process waits for it, the watchdog's included.",
			Source: "seen: the whole process hung, with GetModuleHandleEx and with GetProcAddress",
			says:   "loader", in: sim.LoadLibrary, of: func(w *sim.World) *sched.Lock { return w.Loader }},
		{Name: "environment", Line: "Between suspend and resume, read no environment variable.",
			Text:   "The environment block has a lock of its own, which reading takes too. What a logger or a tracing library looks up by name for every line is enough.",
			Source: "seen: GetEnvironmentVariable deadlocks at the first suspension",
			says:   "environment", in: sim.Environment, of: func(w *sim.World) *sched.Lock { return w.Env }},
		{Name: "log", Line: "Between suspend and resume, log nothing.",
			Text:   "A logger has a lock, and the target may be writing a line just now. The message that was to explain the trouble becomes the trouble.",
			Source: "Broman, problem 1",
			says:   "log", in: sim.NativeOther, of: func(w *sim.World) *sched.Lock { return w.Log }},
		{Name: "profiler-lock", Line: "Take no lock in the window that an application thread may own.",
			Text:   "The profiler's own callbacks run on application threads. A lock they share with the sampler can be owned by a thread at the moment it is suspended: what the sampler needs must come to it through memory that nobody locks.",
			Source: "Broman, problem 1; seen: deadlock after 7 suspensions",
			says:   "profiler", in: sim.NativeWork, of: func(w *sim.World) *sched.Lock { return w.Profiler }},
		{Name: "go-callback", Line: "Application threads never enter Go; callbacks are answered in C and queued.",
			Text:   "Go's collector stops the world, and waits for every thread that runs Go code. If a callback may run Go on an application thread, the target can be suspended there; the first allocation of the sampler that starts a collection then waits for ever.",
			Source: "seen: hangs within 25 s as soon as application threads run Go callbacks",
			says:   "Go's world", in: sim.NativeWork, of: func(w *sim.World) *sched.Lock { return w.GoWorld }},
	}
}

// windowLock is one rule with a parameter: which lock. Its own world is that of the
// first.
func windowLock() *Rule {
	r := &Rule{
		Name:   "window-lock",
		Line:   "Between suspend and resume, take no lock that the target may own.",
		Text:   "Whoever suspends a thread makes itself answerable for all that the thread owns: until it is resumed nobody gives those locks back. Most of them are not seen in the code that takes them: an allocation, a log line, a name that is looked up, a variable of the environment. The parameter of this rule is the lock. The world is the same for each: a thread that takes it and gives it back, a sampler that takes it in the window.",
		Source: "Broman, problem 1",
		Setup:  core22, Bounds: small(3), Wants: sched.Deadlock,
		Locks: windowLocks(),
	}
	l := &r.Locks[0]
	r.Says, r.Broken, r.Kept = l.says, l.broken, l.kept
	return r
}

func (l *Lock) broken(w *sim.World) { holder(w, l.of(w), l.in); takesInWindow(w, l.of(w)) }
func (l *Lock) kept(w *sim.World)   { holder(w, l.of(w), l.in); kept(w, 2) }

// About lists the locks, "" if the rule has no parameter.
func (r *Rule) About() string {
	var names []string
	for i := range r.Locks {
		names = append(names, r.Locks[i].Name)
	}
	if names == nil {
		return ""
	}
	return " With " + strings.Join(names, ", ") + "."
}

// With is the rule for one of its locks, by the lock's name.
func (r *Rule) With(l *Lock) *Rule {
	one := *r
	one.Name, one.Line, one.Text, one.Source = l.Name, l.Line, l.Text, l.Source
	one.Enforced, one.Provoked = l.Enforced, l.Provoked
	one.Locks, one.Says, one.Broken, one.Kept = nil, l.says, l.broken, l.kept
	return &one
}

// holder is a thread that takes l inside the function in, in a P/Invoke.
func holder(w *sim.World, l *sched.Lock, in string) {
	w.SpawnManaged("target", func(t *sim.Thread) {
		t.PInvoke(sim.Native(0), func() { t.Holding(l, in, nil) })
	})
}

// takesInWindow is a sampler that takes l while a thread is suspended.
func takesInWindow(w *sim.World, l *sched.Lock) {
	inWindow(w, func(a *sched.Actor, _ *sim.Thread) {
		a.Lock(l)
		a.Unlock(l)
	})
}

// inWindow is a sampler that does something while the first thread is suspended.
func inWindow(w *sim.World, do func(a *sched.Actor, t *sim.Thread)) {
	w.Host.Sampler(func(a *sched.Actor) {
		t := w.Threads()[0]
		id := clr.Thread{ID: t.ID}
		if !w.Host.Claim(id) {
			return
		}
		defer w.Host.Release(id)
		if _, err := a.SuspendThread(t.A); err != nil {
			return
		}
		if a.Stop(t.A) == nil {
			do(a, t)
		}
		a.ResumeThread(t.A)
	})
}

// kept is the product's sampler: n rounds over all threads, every merged stack
// held against the truth.
func kept(w *sim.World, n int) {
	w.Host.Sampler(func(a *sched.Actor) { w.Host.SampleAll(n) })
}

func osUnwinder() *Rule {
	jits := func(w *sim.World) {
		w.SpawnManaged("target", func(t *sim.Thread) { t.Jit() })
	}
	return &Rule{
		Name:   "os-unwinder",
		Line:   "Between suspend and resume, ask no unwinder of the operating system.",
		Text:   "RtlLookupFunctionEntry takes the lock of ntdll's function tables when the ip is in dynamic code, and libunwind that of the loader's list of objects. A target that compiles a method is adding to those tables just now. Our own tables are immutable and need no lock.",
		Source: "seen: RtlLookupFunctionEntry beside RtlAddFunctionTable deadlocks after 64 suspensions",
		Setup:  core22, Bounds: small(3), Wants: sched.Deadlock, Says: "function tables",
		Broken: func(w *sim.World) { jits(w); takesInWindow(w, w.Tables) },
		Kept:   func(w *sim.World) { jits(w); kept(w, 2) },
	}
}

// snapshotLock is the lock that the CLR's own walk takes.
func snapshotLock() *Rule {
	loads := func(w *sim.World, careful bool) {
		table := w.LoaderTable(careful)
		w.SpawnManaged("target", func(t *sim.Thread) { t.Load(table) })
	}
	return &Rule{
		Name:   "snapshot-lock",
		Line:   "DoStackSnapshot itself may wait for the loader: ask it only of threads that are not in it, with somebody else to resume them.",
		Text:   "With a HelperMethodFrame on top (.NET Core 2 to 9 on Windows, and the .NET Framework) the CLR's walk calls RtlLookupFunctionEntry, which takes the lock of ntdll's table of functions; a target inside LoadLibrary owns it. A rule about the sampler's own calls does not help, since the CLR makes this one. Walk first, and do not ask while the walk passes through the loader. The first call of all is made of a thread that nobody has looked at: for that, and for what a walk does not show, a watchdog takes the thread from the sampler and resumes it, and the sample is thrown away.",
		Source: "dotnet/runtime#32286; dotnet/coreclr gmsamd64.cpp, LazyMachState::unwindLazyState, Thread::VirtualUnwindCallFrame",
		Setup:  core22, Bounds: small(3), Wants: sched.Deadlock, Says: "inverted function table",
		Broken: func(w *sim.World) { loads(w, false); kept(w, 2) },
		Kept:   func(w *sim.World) { loads(w, true); w.Host.Watchdog(); kept(w, 2) },
	}
}

// refused is the CLR's own locks: it says so instead of waiting.
func refused() *Rule {
	collects := func(w *sim.World) {
		w.SpawnManaged("target", func(t *sim.Thread) { t.Collect() })
		w.SpawnManaged("other", func(t *sim.Thread) { t.Poll() })
	}
	return &Rule{
		Name:   "unsafe",
		Line:   "When the CLR refuses with UNSAFE: resume, wait, try again.",
		Text:   "A target that owns locks of the CLR, because it is suspending others for a collection or is itself walked, cannot be walked: the CLR notices and answers CORPROF_E_STACKSNAPSHOT_UNSAFE. Only the target can end that state, and it cannot while it is suspended. Asking again inside the window asks for ever.",
		Source: "Broman, problem 1a; seen: 74 of 74 such refusals stood in the collector's initiator",
		Setup:  core22, Bounds: small(2), Wants: sched.StepLimit, Says: "",
		Broken: func(w *sim.World) { collects(w); asksAgain(w, clr.CORPROF_E_STACKSNAPSHOT_UNSAFE) },
		Kept:   func(w *sim.World) { collects(w); kept(w, 1) },
	}
}

// asksAgain is a sampler that repeats a walk refused with hr without resuming.
func asksAgain(w *sim.World, hr clr.HRESULT) {
	inWindow(w, func(a *sched.Actor, t *sim.Thread) {
		for snap(w, a, t, nil) == hr {
			a.Yield("asks again")
		}
	})
}
