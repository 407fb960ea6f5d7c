package conform

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// busy is a target that stays in a walk of its own while the sampler calls.
func (s *stage) busy() {
	s.target = s.w.SpawnManaged("self", func(t *sim.Thread) {
		t.Method(sim.Method(1), func() {
			t.PInvoke(sim.NativeWork, func() {
				s.w.CLR.DoStackSnapshot(t.A, vm.Call{Receive: func(*vm.Callback) clr.HRESULT {
					s.there = true
					t.A.WaitUntil("the sampler", func() bool { return s.over })
					return clr.S_OK
				}})
			})
		})
	})
	s.walker(func(a *sched.Actor) { s.make(a, nil) })
}

// collection is a target that collects; the case is made in a callback of the
// collection, by the target or by the sampler.
func (s *stage) collection() error {
	var collects *sim.Thread
	collects = s.w.SpawnManaged("self", func(t *sim.Thread) {
		t.Method(sim.Method(1), func() {
			t.A.WaitUntil("the target", func() bool { return s.there || s.target == collects })
			t.Collect()
		})
	})
	s.target = collects
	if s.c.Target != "self" && s.c.Target != "zero" {
		if err := s.place(); err != nil {
			return err
		}
	}
	told := false
	tells := func(a *sched.Actor) {
		if s.c.Caller != "collecting" && s.c.Caller != "forbidden" {
			s.make(a, nil)
			s.over = true
			return
		}
		told = true
		a.WaitUntil("the sampler", func() bool { return s.over })
	}
	switch callbacks := &s.w.CLR.Callbacks; s.c.Caller {
	case "thread-suspend", "forbidden":
		callbacks.RuntimeThreadSuspended = func(a *sched.Actor, _ *vm.Thread) { tells(a) }
	case "suspend-end":
		callbacks.RuntimeSuspendFinished = tells
	default:
		callbacks.GarbageCollectionStarted = tells
	}
	if s.c.Caller == "collecting" || s.c.Caller == "forbidden" {
		s.w.S.Go("sampler", func(a *sched.Actor) {
			a.WaitUntil("the callback", func() bool { return told })
			s.make(a, nil)
			s.over = true
		})
	}
	return nil
}

// suspending is a collection that waits for a thread in cooperative mode while a
// third one, in preemptive mode, makes the case.
func (s *stage) suspending() error {
	if s.c.Target != "zero" {
		if err := s.place(); err != nil {
			return err
		}
	}
	allocates, ready := false, false
	s.w.SpawnManaged("allocates", func(t *sim.Thread) {
		t.Method(sim.Method(1), func() {
			allocates = true
			t.A.WaitUntil("the case", func() bool { return s.over })
			t.Poll()
		})
	})
	s.w.SpawnManaged("collects", func(t *sim.Thread) {
		t.A.WaitUntil("the others", func() bool { return allocates && ready && (s.there || s.target == nil) })
		t.Collect()
	})
	s.w.SpawnManaged("self", func(t *sim.Thread) {
		t.Method(sim.Method(1), func() {
			t.Stub(sim.ILStub(0), sim.NativeWork, func() {
				ready = true
				t.A.WaitUntil("a suspension", s.w.CLR.Suspending)
				s.make(t.A, nil)
				s.over = true
			})
		})
	})
	return nil
}

// make makes the case's call; own is the seed of that name.
func (s *stage) make(a *sched.Actor, own *machine.State) {
	s.answer.Pattern = "-"
	switch s.c.Verb {
	case "suspend":
		s.answer.Result = s.w.CLR.SuspendRuntime(a)
		return
	case "resume":
		s.answer.Result = s.w.CLR.ResumeRuntime(a)
		return
	case "detach":
		s.answer.Result = s.w.CLR.RequestProfilerDetach()
		return
	}
	call := vm.Call{Flags: s.c.Flags, Seed: s.seed(own),
		Used: func(rule string) { s.used = append(s.used, rule) }}
	if s.c.Target != "zero" {
		call.Thread = s.target.ID
	}
	var pattern []byte
	n := 0
	call.Receive = func(cb *vm.Callback) clr.HRESULT {
		n++
		s.answer.Size = len(cb.Context)
		switch {
		case cb.Function == 0:
			pattern = append(pattern, 'U')
		case len(pattern) == 0 || pattern[len(pattern)-1] != 'M':
			pattern = append(pattern, 'M')
		}
		if n == s.c.Stop {
			return s.c.Answer
		}
		return clr.S_OK
	}
	s.answer.Result = s.w.CLR.DoStackSnapshot(a, call)
	if len(pattern) > 0 {
		s.answer.Pattern = string(pattern)
	}
}

// seed makes the seed of the case's name, as conform.c does.
func (s *stage) seed(own *machine.State) *machine.State {
	st := machine.State{}
	if own != nil {
		st = *own
	}
	const nowhere = 0x123456789a8
	switch s.c.Seed {
	case "none":
		return nil
	case "zero":
		st = machine.State{}
	case "wild-ip":
		st.PC = nowhere
	case "native-ip":
		im, f := s.w.Kit.Lookup(sim.NativeWork)
		st.PC = im.Base + uint64(f.RVA)
	case "odd-ips":
		st.PC--
	case "other-sp":
		// The frame can be read, its caller's sp is no longer on the stack.
		if next, ok := machine.Unwind(s.w.Arch, s.w.CLR.Codes.Find, st, true, s.target.M.Word); ok {
			_, high := s.target.M.Bounds()
			by := high - next.R[s.w.Arch.SP()]
			st.R[s.w.Arch.SP()] += by
			st.R[s.w.Arch.FP()] += by
		}
	case "wild-sp":
		st.R[s.w.Arch.SP()], st.R[s.w.Arch.FP()] = nowhere, nowhere
	}
	return &st
}
