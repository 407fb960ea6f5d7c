package conform

import (
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// stage is a simulated process in which one case is made.
type stage struct {
	c      Case
	w      *sim.World
	target *sim.Thread
	there  bool
	over   bool
	answer Answer
	used   []string
}

// Simulate runs a case on the simulated CLR (x86-64) and returns its answer. used lists the rows
// of the decision table, and the rules of the walk, that led to the answer.
func Simulate(v vm.Variant, c Case) (answer Answer, used []string, err error) {
	ws := sched.New(sched.Replay(nil), sched.Options{MaxSteps: 100000})
	w, err := sim.NewWorld(ws, sim.Setup{Variant: v, Arch: image.AMD64})
	if err != nil {
		return Answer{}, nil, err
	}
	s := &stage{c: c, w: w}
	w.CLR.EventMask = c.Run.Mask
	w.CLR.Detaching = c.Run == detach && c.Verb != "detach" && v.HasSuspendRuntime()
	if err := s.people(); err != nil {
		return Answer{}, nil, err
	}
	switch r := ws.Run(); r.Outcome {
	case sched.Done:
	case sched.Fault:
		s.answer = Answer{Fate: fate(r.Fault)}
	default:
		s.answer = Answer{Fate: r.Outcome.String()}
	}
	return s.answer, s.used, nil
}

// fate shortens a fault to the code that the process ends with.
func fate(fault string) string {
	for _, code := range []string{"8013135e", "80131506", "segmentation fault"} {
		if strings.Contains(fault, code) {
			return "the process ends with " + code
		}
	}
	return fault
}

// people starts the target and whoever calls.
func (s *stage) people() error {
	switch s.c.Caller {
	case "initialize":
		s.w.CLR.Started, s.w.CLR.EventMask = false, 0
		s.walker(func(a *sched.Actor) { s.make(a, nil) })
		s.there = true
		return nil
	case "sampler", "suspended", "held", "crowded", "moved", "trapped", "detaching", "dead":
		if err := s.place(); err != nil {
			return err
		}
		s.walker(s.outside)
		return nil
	case "busy":
		s.busy()
		return nil
	case "collector", "collecting", "thread-suspend", "forbidden", "suspend-end":
		return s.collection()
	case "suspending":
		return s.suspending()
	}
	return s.own()
}

// walker is a thread that never ran managed code.
func (s *stage) walker(body func(a *sched.Actor)) {
	s.w.S.Go("sampler", func(a *sched.Actor) {
		a.WaitUntil("the target", func() bool { return s.there })
		body(a)
		s.over = true
	})
}

// stand is where the target waits, coming to safe points.
func (s *stage) stand() {
	s.there = true
	for !s.over {
		s.target.A.WaitUntil("its release", func() bool { return s.over || s.w.CLR.Suspending() })
		s.target.Poll()
		s.target.A.WaitUntil("the runtime", func() bool { return s.over || !s.w.CLR.Suspending() })
	}
}

// place starts the target of a role where Conform.cs has it.
func (s *stage) place() error {
	switch s.c.Target {
	case "idle":
		s.target = s.w.Spawn("target", func(t *sim.Thread) { t.Native(sim.NativeWork, s.stand) })
		s.target.Thread = s.w.CLR.Adopt(s.target.Thread)
		return nil
	case "dead":
		s.target = s.w.SpawnManaged("target", func(*sim.Thread) {})
		s.there = true
		return nil
	}
	body, ok := s.bodies()[s.c.Target]
	if !ok {
		return fmt.Errorf("conform: case %s: no role %s", s.c.Name, s.c.Target)
	}
	s.target = s.w.SpawnManaged("target", func(t *sim.Thread) {
		// A managed thread begins with a Frame that leads to no managed code.
		// Source: threads.cpp, ManagedThreadBase (DebuggerU2MCatchHandlerFrame).
		_, high := t.M.Bounds()
		t.Chain = append(t.Chain, vm.Frame{Address: high - 8})
		t.Method(sim.Method(1), func() { body(t) })
		t.Chain = t.Chain[:0]
	})
	return nil
}

func (s *stage) bodies() map[string]func(t *sim.Thread) {
	sleep := func(t *sim.Thread) { t.Stub(sim.ILStub(0), sim.NativeWork, s.stand) }
	// A handler that managed exception handling calls: what dispatches is hidden.
	handler := func(t *sim.Thread) {
		t.Method(sim.HiddenMethod(0), func() { t.Method(sim.Method(2), func() { sleep(t) }) })
	}
	filter := handler
	if !s.w.Variant.HasSuspendRuntime() {
		// One that unmanaged exception handling calls: a filter before anything is
		// unwound, the others after.
		handler = func(t *sim.Thread) {
			t.Framed(sim.ThrowHelper, func() { t.Handler(sim.Method(2), func() { sleep(t) }) })
		}
		filter = func(t *sim.Thread) {
			t.Framed(sim.ThrowHelper, func() { t.Reenter(sim.Method(2), func() { sleep(t) }) })
		}
	}
	return map[string]func(t *sim.Thread){
		"zero":  sleep,
		"spin":  func(*sim.Thread) { s.stand() },
		"sleep": sleep,
		"nested": func(t *sim.Thread) {
			t.PInvoke(sim.NativeWork, func() { t.Managed(sim.Method(2), func() { sleep(t) }) })
		},
		"wait": func(t *sim.Thread) {
			t.Framed(sim.ThrowHelper,
				func() { s.w.CLR.Leave(t.Thread); s.stand(); s.w.CLR.Return(t.A, t.Thread) })
		},
		"finally": handler, "filter": filter, "catch": handler,
		"main": sleep,
	}
}

// outside makes the case from the sampler.
func (s *stage) outside(a *sched.Actor) {
	switch s.c.Caller {
	case "suspended":
		s.w.CLR.SuspendRuntime(a)
		s.make(a, nil)
		if s.c.Verb != "resume" {
			s.w.CLR.ResumeRuntime(a)
		}
	case "held", "crowded", "moved":
		s.holding(a)
	case "trapped":
		s.target.Trap = true
		s.make(a, nil)
	case "dead":
		a.WaitUntil("its end", func() bool { return s.target.Dead })
		s.make(a, nil)
	default:
		s.make(a, nil)
	}
}

// holding makes the case while the sampler has the target suspended: once, or as
// often as can be, or with its sp above its innermost Frame.
func (s *stage) holding(a *sched.Actor) {
	count := 0
	for most := map[string]int{"crowded": 1000}[s.c.Caller]; count <= most; count++ {
		if _, err := a.SuspendThread(s.target.A); err != nil {
			break
		}
	}
	a.Stop(s.target.A)
	st := s.target.M.State()
	if s.c.Caller == "moved" {
		low, _ := s.target.M.Bounds()
		s.target.Chain = append(s.target.Chain, vm.Frame{Address: low})
	}
	s.make(a, &st)
	if s.c.Caller == "moved" {
		s.target.Chain = s.target.Chain[:len(s.target.Chain)-1]
	}
	for range count {
		a.ResumeThread(s.target.A)
	}
}

// own makes the case on a thread that walks itself, or another.
func (s *stage) own() error {
	other := s.c.Target != "zero" && s.c.Target != "self"
	if other {
		if err := s.place(); err != nil {
			return err
		}
	}
	self := s.w.SpawnManaged("self", func(t *sim.Thread) {
		t.Method(sim.Method(1), func() { s.situation(t) })
	})
	if !other {
		s.target = self
	}
	return nil
}

func (s *stage) situation(t *sim.Thread) {
	made := func() {
		t.A.WaitUntil("the target", func() bool { return s.there || s.target == t })
		s.make(t.A, nil)
		s.over = true
	}
	preemptive := func() { s.w.CLR.Leave(t.Thread); made(); s.w.CLR.Return(t.A, t.Thread) }
	switch s.c.Caller {
	case "pinvoke":
		t.Stub(sim.ILStub(0), sim.NativeWork, made)
	case "allocation":
		t.Framed(sim.GCAlloc, func() {
			var own machine.State
			s.w.CLR.DoStackSnapshot(t.A,
				vm.Call{Receive: func(cb *vm.Callback) clr.HRESULT { own = cb.State; return clr.S_FALSE }})
			s.make(t.A, &own)
		})
	case "thrown", "search":
		t.Framed(sim.ThrowHelper, preemptive)
	case "finally", "catcher":
		// Unmanaged exception handling tells of a handler before it is entered.
		t.Except.Unwinding = !s.w.Variant.HasSuspendRuntime()
		t.Framed(sim.ThrowHelper, preemptive)
	case "unwind":
		t.Except.Unwinding = true
		t.Framed(sim.ThrowHelper, preemptive)
	default:
		t.A.Fault("no caller %s", s.c.Caller)
	}
}
