package vm

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// Flags of DoStackSnapshot's infoFlags. Source: corprof.idl.
const (
	RegisterContext uint32 = 1
	X86Optimized    uint32 = 2
)

// Call is one call of DoStackSnapshot.
type Call struct {
	Thread  clr.ThreadID                   // 0: the caller's own
	Flags   uint32                         // infoFlags
	Seed    *machine.State                 // nil: none
	Receive func(cb *Callback) clr.HRESULT // the profiler's callback
	Lookup  func() bool                    // reports whether the code lookup lock is free; nil: it always is
	Used    func(rule string)              // called for each row and walk rule with an effect; may be nil

	c         *CLR
	a         *sched.Actor
	self      *Thread
	t         *Thread
	locked    bool // the target's hijack lock is ours
	suspended bool // the CLR has suspended the target itself
	seed      *machine.State
	current   machine.State
	told      told // for the trace
}

// DoStackSnapshot is ICorProfilerInfo2::DoStackSnapshot, called by actor a.
func (c *CLR) DoStackSnapshot(a *sched.Actor, call Call) clr.HRESULT {
	k := &call
	k.c, k.a, k.self, k.seed = c, a, c.Of(a), call.Seed
	defer k.undo()
	a.Note("%v", asked{k})
	hr, by := k.answer()
	a.Observe(uint64(hr)) // before the points of undo
	a.Note("%v", answered{k, hr, by})
	return hr
}

// answer evaluates the table and then walks. by is the row that decided.
func (k *Call) answer() (hr clr.HRESULT, by *Row) {
	for i := range Table {
		r := &Table[i]
		if !r.In.has(k.c.Variant) {
			continue
		}
		if hr, decided := r.decide(k); decided {
			k.used(r.N)
			return hr, r
		}
	}
	return k.walk(), nil
}

func (k *Call) used(rule string) {
	if k.Used != nil {
		k.Used(rule)
	}
}

// undo releases the locks and suspensions of the call, after any row.
func (k *Call) undo() {
	if k.suspended {
		k.a.ResumeThread(k.t.Actor)
	}
	if k.locked {
		k.a.Unlock(k.t.Hijack)
	}
}

// other reports whether the target is not the calling thread.
func (k *Call) other() bool { return k.t != k.self }

// Row is a line of the decision table. Rows are evaluated in order. The first row that decides ends the
// call.
type Row struct {
	N      string // its number, as in the facts
	When   string // the condition, for people
	Then   string // the result, for people
	Source string // where it was read or seen
	In     set
	decide func(k *Call) (clr.HRESULT, bool)
}

// Variants names the CLRs that have the row.
func (r *Row) Variants() []string { return r.In.Names() }

// Has reports whether v has the row.
func (r *Row) Has(v Variant) bool { return r.In.has(v) }

const (
	src   = "proftoeeinterfaceimpl.cpp, ProfToEEInterfaceImpl::DoStackSnapshot"
	seen  = src + "; seen on 2.0.0, 2.2.2, 9.0.5, 10.0.9"
	wine  = src + "; seen on 2.0.0, 2.2.2, 10.0.9 of Windows"
	core2 = src + "; seen on 2.0.0, 2.2.2"
)

// on decides hr if the condition holds.
func on(cond func(k *Call) bool, hr clr.HRESULT) func(k *Call) (clr.HRESULT, bool) {
	return func(k *Call) (clr.HRESULT, bool) { return hr, cond(k) }
}

// then has an effect and leaves the decision to later rows.
func then(effect func(k *Call)) func(k *Call) (clr.HRESULT, bool) {
	return func(k *Call) (clr.HRESULT, bool) { effect(k); return 0, false }
}

// Table has the decisions of DoStackSnapshot before its walk. After the last row, the walk begins; walk.go
// has its rules.
var Table = []Row{
	{"1", "the profiler is being detached", "CORPROF_E_PROFILER_DETACHING",
		src + "; seen on 9.0.5, 10.0.9", all,
		on(func(k *Call) bool { return k.c.Detaching }, clr.CORPROF_E_PROFILER_DETACHING)},
	{"2", "the execution engine has not started", "UNSAFE", seen, all,
		on(func(k *Call) bool { return !k.c.Started }, clr.CORPROF_E_STACKSNAPSHOT_UNSAFE)},
	{"3", "the event mask lacks ENABLE_STACK_SNAPSHOT", "INCONSISTENT_WITH_FLAGS", seen, all,
		on(func(k *Call) bool { return k.c.EventMask&EnableStackSnapshot == 0 },
			clr.CORPROF_E_INCONSISTENT_WITH_FLAGS)},
	{"4", "thread 0", "the target is the calling thread, if the CLR knows it", seen, all, then(rowTarget)},
	{"5", "infoFlags has a bit besides REGISTER_CONTEXT", "E_INVALIDARG", seen, all,
		on(func(k *Call) bool { return k.Flags&^RegisterContext != 0 }, clr.E_INVALIDARG)},
	{"6", "the target is no managed thread, or the collector is not initialised",
		"S_OK without a callback", seen, all,
		on(func(k *Call) bool { return k.t == nil || k.c.NoGC }, clr.S_OK)},
	{"6a", "the first call of a thread that is not the CLR's",
		"per-thread state is made, under a lock of the CLR",
		"the remarks of the reference page", all,
		then(func(k *Call) { k.c.initialise(k.a) })},
	{"7", "the target's hijack lock is not free at once", "UNSAFE", seen, all,
		on(func(k *Call) bool {
			k.locked = k.a.TryLock(k.t.Hijack)
			return !k.locked
		}, clr.CORPROF_E_STACKSNAPSHOT_UNSAFE)},
	{"8", "another thread than the caller, which is a CLR thread, while the runtime is being suspended",
		"UNSAFE", seen, all,
		on(func(k *Call) bool { // once all threads have stopped, the suspension is no longer in progress
			return k.other() && k.self != nil && k.c.Suspending() && !k.c.stopped
		}, clr.CORPROF_E_STACKSNAPSHOT_UNSAFE)},
	{"9", "the target is in a forbid-suspend region", "UNSAFE", seen, all,
		on(func(k *Call) bool { return k.t.Forbid != 0 }, clr.CORPROF_E_STACKSNAPSHOT_UNSAFE)},
	{"10", "another thread, which is dead",
		"the process ends with INVALID_TGT_THREAD", core2, windows, then(rowDead)},
	{"11", "another thread, and the CLR's own SuspendThread fails", "UNSAFE", core2, windows, rowSuspend},
	{"11u", "another thread, and the profiler has not suspended the runtime", "E_NOTIMPL",
		src + "; seen on 9.0.5, 10.0.9", unix,
		on(func(k *Call) bool { return k.other() && !k.c.profiler }, clr.E_NOTIMPL)},
	{"12", "the target is in preemptive mode", "the seed is thrown away, not even looked at", seen, all,
		then(func(k *Call) {
			if k.t.Mode == Preemptive && k.seed != nil {
				k.used("12")
				k.seed = nil
			}
		})},
	{"13u", "another thread in cooperative mode, though the profiler has suspended the runtime",
		"E_NOTIMPL", src, unix,
		on(func(k *Call) bool { return k.cooperative() }, clr.E_NOTIMPL)},
	{"13", "another thread in cooperative mode whose context cannot be redirected", "UNSAFE",
		wine, windows,
		on(func(k *Call) bool { return k.cooperative() && k.t.Trap }, clr.CORPROF_E_STACKSNAPSHOT_UNSAFE)},
	{"14a", "the same, and the lookup lock is not free at once",
		"ASYNCHRONOUS_UNSAFE", src, windows,
		on(func(k *Call) bool { return k.cooperative() && k.lookupBusy() },
			clr.CORPROF_E_ASYNCHRONOUS_UNSAFE)},
	{"14b", "the same, and the top of the Frame chain lies below its sp", "UNSAFE", core2, windows,
		on(func(k *Call) bool {
			top := k.t.Top()
			return k.cooperative() && top != nil && top.Address < k.current.R[k.c.Arch.SP()]
		}, clr.CORPROF_E_STACKSNAPSHOT_UNSAFE)},
	{"15", "the same, without a seed", "the seed is its current context", core2, windows,
		then(func(k *Call) {
			if k.cooperative() && k.seed == nil {
				k.used("15")
				k.seed = &k.current
			}
		})},
	{"16a", "the profiler's seed is used, and the lookup lock is not free at once",
		"ASYNCHRONOUS_UNSAFE", src, all,
		on(func(k *Call) bool { return k.seed != nil && k.seed != &k.current && k.lookupBusy() },
			clr.CORPROF_E_ASYNCHRONOUS_UNSAFE)},
	{"16", "the seed's ip is not managed code", "UNMANAGED_CTX", seen, all,
		on(func(k *Call) bool { return k.seed != nil && !k.c.Codes.Managed(k.seed.PC) },
			clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX)},
	{"17", "no seed, and an exception unwinds that no managed handler was entered for",
		"UNMANAGED_CTX", seen, all,
		on(func(k *Call) bool { return k.seed == nil && k.t.Except.Unwinding },
			clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX)},
	{"18", "the target's exception state is flagged inconsistent", "UNSAFE", src, all,
		on(func(k *Call) bool { return k.t.Except.Inconsistent }, clr.CORPROF_E_STACKSNAPSHOT_UNSAFE)},
}

// cooperative reports whether the target is another thread in cooperative mode.
func (k *Call) cooperative() bool { return k.other() && k.t.Mode == Cooperative }

func rowTarget(k *Call) {
	if k.Thread != 0 {
		k.t = k.c.Thread(k.Thread)
		return
	}
	k.used("4")
	k.t = k.self
}

func rowDead(k *Call) {
	if k.other() && k.t.Dead && !k.c.profiler {
		k.used("10")
		k.a.Fault("DoStackSnapshot of a dead thread, %s: the CLR ends the process with 8013135e",
			k.t.Actor.Name())
	}
}

// rowSuspend suspends the target once more, unless the profiler has stopped the
// runtime, and reads its context.
func rowSuspend(k *Call) (clr.HRESULT, bool) {
	if k.other() && !k.c.profiler {
		if _, err := k.a.SuspendThread(k.t.Actor); err != nil {
			if k.c.Variant == Net10Windows { // seen on 10.0.9
				k.used("11")
				k.a.Fault("the CLR cannot suspend %s: fail-fast 80131506", k.t.Actor.Name())
			}
			return clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, true
		}
		k.suspended = true
		if err := k.a.Stop(k.t.Actor); err != nil {
			return clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, true
		}
	}
	k.a.Reads(k.t.Actor)
	k.current = k.t.M.State()
	return 0, false
}

// lookupBusy asks for the code lookup lock, once for each ip to be looked up.
func (k *Call) lookupBusy() bool { return k.Lookup != nil && !k.Lookup() }
