package rules

import (
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

var net9 = sim.Setup{Variant: vm.Net9Linux}

// unix are the rules of the other way: the runtime is suspended, and threads
// copy their own stacks in a signal handler.
func unix() []*Rule {
	return []*Rule{
		{
			Name:   "held-in-handler",
			Line:   "On Linux, hold no thread while the CLR walks.",
			Text:   "On Linux, the CLR's walker uses its own libunwind with one global mutex. A thread that handles an exception may own it. If the signal handler keeps that thread until DoStackSnapshot returns, the walk waits for a mutex whose owner waits for the walk. Let the thread run: while the runtime is suspended it can run only unmanaged code, so its managed frames stay as they were when it copied its stack.",
			Source: "seen: .NET 9.0.5, an exception-heavy program, within seconds",
			Setup:  net9, Bounds: small(3), Reach: sched.Unbounded, Wants: sched.Deadlock, Says: "libunwind",
			Broken: func(w *sim.World) { throws(w); holdsInHandler(w) },
			Kept:   func(w *sim.World) { throws(w); kept(w, 2) },
		},
		{
			Name:   "resume-runtime",
			Line:   "Call ResumeRuntime after every successful SuspendRuntime, on every path.",
			Text:   "The runtime stays suspended until the profiler resumes it. If a path forgets that, for example because a walk failed or a thread ended, every thread of the program stops when it next returns to managed code.",
			Source: "ICorProfilerInfo10::SuspendRuntime in corprof.idl",
			Setup:  net9, Bounds: small(4), Reach: sched.Unbounded, Wants: sched.Deadlock, Says: "sampler",
			Broken: func(w *sim.World) { works(w, "target"); forgetsResume(w) },
			Kept:   func(w *sim.World) { works(w, "target"); kept(w, 2) },
		},
		{
			Name:   "alternate-stack",
			Line:   "Run the sampling signal's handler on the thread's own stack (no SA_ONSTACK).",
			Text:   "The CLR gives its threads an alternate signal stack of 16 KiB, for stack overflows, and a thread may be using it. It has no room for a second handler, which would overwrite the memory below. The Go runtime adds SA_ONSTACK to every handler that is installed when it starts, including the CLR's: a profiler in Go must restore them.",
			Source: "golang/go#78883, dotnet/runtime#127320; seen: SIGSEGV under collections",
			Setup:  net9, Bounds: small(3), Wants: sched.Fault, Says: "overflows",
			Broken: func(w *sim.World) { handlesSignal(w); signalsOnAlternate(w) },
			Kept:   func(w *sim.World) { handlesSignal(w); kept(w, 2) },
		},
	}
}

// alternate is the room of the alternate stack here, bytes: for one signal frame
// and its handler, as 16 KiB are for the real ones.
func alternate(a image.Arch) uint64 {
	l := image.SignalLayout(a)
	return uint64(l.Size+0x1ff) &^ 0xff
}

// handlesSignal is a thread that handles a signal of the CLR's on its alternate
// stack.
func handlesSignal(w *sim.World) {
	w.SpawnManaged("target", func(t *sim.Thread) {
		t.M.AltStack(0x6000_0000, 0x6000_0000+alternate(w.Arch))
		t.PInvoke(sim.NativeWork, func() {
			if !t.Signal(sim.NativeOther, nil) {
				t.A.Fault("no room for one signal")
			}
		})
	})
}

// signalsOnAlternate is a sampler whose handler was given SA_ONSTACK.
func signalsOnAlternate(w *sim.World) {
	w.Host.Sampler(func(a *sched.Actor) {
		t := w.Threads()[0]
		a.Signal(t.A, func(*sched.Actor) {
			if t.M.Depth() > 0 && !t.Signal(sim.NativeWork, nil) {
				t.A.Fault("the handler overflows the alternate stack")
			}
		})
	})
}

// throws is a thread that unwinds an exception: in preemptive mode, with the
// CLR's libunwind.
func throws(w *sim.World) {
	w.SpawnManaged("target", func(t *sim.Thread) {
		t.PInvoke(sim.ThrowHelper, func() { t.Holding(w.CLR.Unwinder, sim.NativeOther, nil) })
	})
}

// holdsInHandler is a sampler whose signal handler keeps the thread.
func holdsInHandler(w *sim.World) {
	w.Host.Sampler(func(a *sched.Actor) {
		t := w.Threads()[0]
		if w.CLR.SuspendRuntime(a).Failed() {
			return
		}
		caught, done := false, false
		sent := a.Signal(t.A, func(h *sched.Actor) {
			caught = true
			h.WaitUntil("the walk to end", func() bool { return done }, a)
		})
		if sent {
			a.WaitUntil("the thread's answer", func() bool { return caught || t.A.Ended() }, t.A)
			snap(w, a, t, nil)
		}
		done = true
		w.CLR.ResumeRuntime(a)
	})
}

// forgetsResume is a sampler that returns early when a walk fails.
func forgetsResume(w *sim.World) {
	w.Host.Sampler(func(a *sched.Actor) {
		if w.CLR.SuspendRuntime(a).Failed() {
			return
		}
		if snap(w, a, w.Threads()[0], nil).Failed() {
			return
		}
		w.CLR.ResumeRuntime(a)
	})
}

// outside lists the rules of sampling a process from outside by signals, on Linux. The worlds of
// sim/native show those about orders; real processes show the others.
var outside = []TextRule{
	{"late-signal", "A thread may take its signal late: keep the request's number and its state in one word.",
		"A thread can lose its processor for seconds between the signal and the first step of its handler. By then the request may be withdrawn, and its slot may hold another one. A handler that checks the number and then takes the request in a second step can take the wrong one: the stack of one thread is recorded as that of another. One compare-and-exchange of one word decides both.",
		"sim/native TestWorlds, world capture", never + "; 354 of 1,939 executions with two words"},
	{"signal-after-end", "Count a signal, check that its handler stays, and only then send it.",
		"The default action of most signals ends the process. A tool that is stopped just before the system call sends its signal when the recording is over and the handler is gone. So the tool counts the signal first and then reads whether the recording has ended. Whoever ends it writes that first, and then reads the count. If a signal is missing, its handler stays, also after the next recording.",
		"sim/native TestWorlds, world unrelay; sample/probe TestRelay",
		never + "; found in the C of the probe"},
	{"late-handler", "Use memory again only when no handler runs that may write to it.",
		"A handler that lost its processor in the middle of a sample writes the rest of it when it runs again. If another recording has the same memory by then, it finds a sample made of two. Each handler counts itself before it reads whether the recording has ended. A new recording begins only when that count is 0.",
		"sim/native TestWorlds, world restart", never + "; 10,000 of 23,315 executions without the count"},
	{"late-helper", "Mark a helper thread as running before it is created, not when it starts.",
		"A thread that ends an event session may start late. If the next recording takes its absence for the end of the session, both share what the first one left in static variables: one session is ended twice and the other never.",
		"sim/native TestWorlds, world ended", never + "; 32 of 37 executions"},
	{"blocked-signal", "A handler that never returns leaves its signal mask behind.",
		"The runtime turns a bad address into an exception by leaving the handler of SIGSEGV without returning. What the handler blocked stays blocked in that thread, and in the threads that it creates. They take no samples any more. The runtime's own signal still reaches them; a relay in front of its handler opens the mask again.",
		"sample/probe TestRelay, TestRelayOfMasks",
		".NET 9.0.5 of Linux, a program that catches NullReferenceException"},
	{"dead-tool", "Whatever a tool installs in a process must end by itself when the tool dies.",
		"A tool can be killed at any step. Timers would go on sending signals, and memory would stay. The tool therefore writes a heartbeat. A handler that finds it too old stops all timers, and a thread that creates a timer reads the heartbeat once more afterwards.",
		"sim/native TestWorlds, world arm; e2e TestProbeKilled, TestProbeKilledOften, TestKilledAnywhere",
		"kill -9 of the tool at random times, .NET 9.0.5 of Linux"},
	{"another-program", "Check before each signal that the process is still the same program.",
		"exec keeps the process number and removes every handler. A signal that was meant for the program before ends the new one.",
		"e2e TestProbeExec", "exec in a recorded process"},
	{"timer-tick", "A timer of CPU time expires only on the kernel's tick: it does not sample at random.",
		"The tick is 1 to 10 ms apart. Work that a timer or a wake-up starts is correlated with it, so that a method can have a third of the CPU time and no samples. An event of the CPU's own clock (perf_event) has no such bias. Where it is not permitted, seedwalk draws the times at random. A test that measures with the same timer does not notice.",
		"e2e TestBias", ".NET 9.0.5 and 10.0.9 of Linux: a method with 30.2 % of the CPU time was shown with 2.9 %"},
	{"changing-tables", "Tables that a running process changes may be torn: check each answer twice.",
		"Methods are compiled and freed while their tables are read from outside. A pointer may lead anywhere, and a list may form a circle. Every read has a bound, every loop has a limit, and an edge counts only if both ends agree.",
		"stack/walk TestCopiedWorlds; sample/paused TestTornTasks",
		"10.0.9 of Linux, a program that allocates and collects all the time"},
}
