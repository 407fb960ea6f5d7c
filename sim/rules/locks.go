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
			Text:   "The suspended thread may be in the allocator and own the heap's lock. A sampler that allocates waits for that lock, and no other thread resumes its owner.",
			Source: "Broman, problem 1; seen: HeapAlloc deadlocks after 978 suspensions",
			says:   "process heap", in: sim.HeapAlloc, of: func(w *sim.World) *sched.Lock { return w.Heap }},
		{Name: "loader", Line: "Between suspend and resume, call nothing that takes the loader's lock.",
			Text:   "GetModuleHandleEx, GetProcAddress, LoadLibrary, and the first call of a delay-loaded function take the loader's lock. A target that is suspended in LoadLibrary owns it. Soon every thread of the process waits for it, including the watchdog's.",
			Source: "seen: the whole process hung, with GetModuleHandleEx and with GetProcAddress",
			says:   "loader", in: sim.LoadLibrary, of: func(w *sim.World) *sched.Lock { return w.Loader }},
		{Name: "environment", Line: "Between suspend and resume, read no environment variable.",
			Text:   "The environment block has its own lock, and reading takes it too. A logger or a tracing library that reads a variable for each line is enough.",
			Source: "seen: GetEnvironmentVariable deadlocks at the first suspension",
			says:   "environment", in: sim.Environment, of: func(w *sim.World) *sched.Lock { return w.Env }},
		{Name: "log", Line: "Between suspend and resume, log nothing.",
			Text:   "A logger has a lock, and the target may be writing a line. The message that should explain a problem then causes one.",
			Source: "Broman, problem 1",
			says:   "log", in: sim.NativeOther, of: func(w *sim.World) *sched.Lock { return w.Log }},
		{Name: "profiler-lock", Line: "Between suspend and resume, take no lock that an application thread may own.",
			Text:   "The profiler's own callbacks run on application threads. If they share a lock with the sampler, a thread can own that lock when it is suspended. Pass data to the sampler through memory without locks.",
			Source: "Broman, problem 1; seen: deadlock after 7 suspensions",
			says:   "profiler", in: sim.NativeWork, of: func(w *sim.World) *sched.Lock { return w.Profiler }},
		{Name: "go-callback", Line: "Application threads never enter Go: callbacks are answered in C, which queues events.",
			Text:   "Go's collector waits for every thread that runs Go code. If a callback runs Go on an application thread, the target can be suspended there. The sampler hangs as soon as one of its allocations starts a collection.",
			Source: "seen: hangs within 25 s as soon as application threads run Go callbacks",
			says:   "Go's world", in: sim.NativeWork,
			of: func(w *sim.World) *sched.Lock { return w.GoWorld }},
	}
}

// windowLock is one rule with a parameter: which lock. Its own world is that of the
// first.
func windowLock() *Rule {
	r := &Rule{
		Name:   "window-lock",
		Line:   "Between suspend and resume, take no lock that the target may own.",
		Text:   "A suspended thread does not release the locks that it owns. Most locks are not visible in the code that takes them: an allocation, a log line, a lookup by name, an environment variable. The parameter of this rule is the lock. The world is the same for each: one thread takes and releases the lock, and a sampler takes it between suspend and resume.",
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

// meets is a target and seedwalk's own sampler. The target does the act when the sampler has made its
// first call, and only then the sampler goes on. Otherwise most orders would be those of the first
// call, and few samples would meet the act.
func meets(w *sim.World, n int, act func(t *sim.Thread)) {
	there, due := false, false
	w.SpawnManaged("target", func(t *sim.Thread) {
		t.Method(sim.Method(1), func() {
			there = true
			t.WaitUntil("the sampler's first call", func() bool { return w.Host.Primed })
			due = true
			act(t)
		})
	})
	w.Host.Ready = func() bool { return due }
	w.Host.Sampler(func(a *sched.Actor) {
		a.WaitUntil("a thread to walk", func() bool { return there })
		w.Host.SampleAll(n)
	})
}

func osUnwinder() *Rule {
	jits := func(w *sim.World) {
		w.SpawnManaged("target", func(t *sim.Thread) { t.Jit() })
	}
	return &Rule{
		Name:   "os-unwinder",
		Line:   "Between suspend and resume, call no unwinder of the operating system.",
		Text:   "RtlLookupFunctionEntry takes the lock of ntdll's function tables if the ip is in dynamic code. libunwind takes the lock of the loader's list of objects. A target that compiles a method changes these tables and may own the lock. seedwalk's tables are immutable and need no lock.",
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
		Line:   "DoStackSnapshot itself may wait for the loader's lock: do not call it for threads in the loader, and have a watchdog that resumes them.",
		Text:   "If a HelperMethodFrame is on top (.NET Core 2 to 9 on Windows, and the .NET Framework), the CLR's walk calls RtlLookupFunctionEntry. It takes the lock of ntdll's function table, which a target in LoadLibrary owns. Rules for the sampler's own calls do not help, because the CLR makes this call. So walk first, and do not call DoStackSnapshot if a frame is in the loader. A walk may miss that, and the very first call has no walk before it. For these cases a watchdog takes the thread from the sampler and resumes it, and the sample is dropped.",
		Source: "dotnet/runtime#32286; dotnet/coreclr gmsamd64.cpp, LazyMachState::unwindLazyState, Thread::VirtualUnwindCallFrame",
		Setup:  core22, Bounds: small(3), Reach: 4, Wants: sched.Deadlock, Says: "inverted function table",
		Broken: func(w *sim.World) { loads(w, false); kept(w, 2) },
		Kept:   func(w *sim.World) { loads(w, true); w.Host.Watchdog(); kept(w, 2) },
	}
}

// refused is the CLR's own locks: it says so instead of waiting.
func refused() *Rule {
	other := func(w *sim.World) {
		w.SpawnManaged("other", func(t *sim.Thread) { t.Poll() })
	}
	return &Rule{
		Name:   "unsafe",
		Line:   "If the CLR answers UNSAFE, resume the target, wait, and try again.",
		Text:   "The CLR cannot walk a target that owns its locks, for example because it is suspending other threads for a collection. The CLR then answers CORPROF_E_STACKSNAPSHOT_UNSAFE. Only the target can leave that state, and only if it runs. A retry while it is suspended never succeeds.",
		Source: "Broman, problem 1a; seen: in 74 of 74 such refusals the target had started the collection",
		Setup:  core22, Bounds: small(3), Wants: sched.StepLimit, Says: "",
		Broken: func(w *sim.World) {
			w.SpawnManaged("target", (*sim.Thread).Collect)
			other(w)
			asksAgain(w, clr.CORPROF_E_STACKSNAPSHOT_UNSAFE)
		},
		Kept: func(w *sim.World) { meets(w, 1, (*sim.Thread).Collect); other(w) },
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
