package vm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// scene is a world with one target, which stands somewhere, and one walker, who
// makes scripted calls.
type scene struct {
	t      *testing.T
	w      *sim.World
	target *sim.Thread
	there  bool // the target has arrived
	over   bool // the walker is done
	truth  []machine.Frame

	hr        clr.HRESULT
	callbacks []vm.Callback
	held      []string // what a call has left behind
}

// newScene makes a scene whose target stands where place leads it.
func newScene(t *testing.T, v vm.Variant, a image.Arch, place func(s *scene)) *scene {
	t.Helper()
	s := &scene{t: t}
	w := must.Get(sim.NewWorld(sched.New(sched.Replay(nil), sched.Options{Trace: true, MaxSteps: 20000}),
		sim.Setup{Variant: v, Arch: a}))(t)
	s.w = w
	place(s)
	return s
}

// stand is where a target waits for the scene's end, coming to safe points.
func (s *scene) stand() {
	s.truth = s.target.M.Truth(nil)
	s.there = true
	for !s.over {
		s.target.A.WaitUntil("its release", func() bool { return s.over || s.w.CLR.Suspending() })
		s.target.Poll()
		s.target.A.WaitUntil("the end of the suspension",
			func() bool { return s.over || !s.w.CLR.Suspending() })
	}
}

// Places.

// inMethod is managed code in cooperative mode.
func inMethod(s *scene) {
	s.target = s.w.SpawnManaged("target", func(t *sim.Thread) { t.Method(sim.Method(1), s.stand) })
}

// inHelper is a helper of the CLR's in cooperative mode: what needs a seed.
func inHelper(s *scene) {
	s.target = s.w.SpawnManaged("target", func(t *sim.Thread) {
		t.Method(sim.Method(1), func() { t.Helper(sim.ThrowHelper, s.stand) })
	})
}

// inNative is a P/Invoke: preemptive mode, and the Frame chain knows the caller.
func inNative(s *scene) {
	s.target = s.w.SpawnManaged("target", func(t *sim.Thread) {
		t.Method(sim.Method(1), func() { t.PInvoke(sim.NativeWork, s.stand) })
	})
}

// inNowhere is a thread that the CLR knows and that runs nothing managed.
func inNowhere(s *scene) {
	s.target = s.w.Spawn("target", func(t *sim.Thread) { t.Native(sim.NativeWork, s.stand) })
	s.target.Thread = s.w.CLR.Adopt(s.target.Thread)
}

// inLoop is managed code that a collection redirects from, and that waits for the
// scene's end without coming to a safe point.
func inLoop(s *scene) {
	s.w.Redirects(func(uint64) bool { return true })
	s.target = s.w.SpawnManaged("target", func(t *sim.Thread) {
		t.Method(sim.Method(1), func() {
			s.truth = t.M.Truth(nil)
			s.there = true
			t.WaitUntil("its release", func() bool { return s.over })
			if t.M.State() != s.truth[0].State {
				t.A.Fault("it goes on with other registers than it had")
			}
		})
	})
}

// sent makes the plain call while the walker holds the target suspended, after a collection has
// redirected the target. If seeded is true, the seed is the target's context before that.
func sent(seeded bool) func(s *scene, a *sched.Actor) {
	return func(s *scene, a *sched.Actor) {
		t := s.target
		a.SuspendThread(t.A)
		if err := a.Stop(t.A); err != nil {
			a.Fault("%v", err)
		}
		s.w.S.Go("collector", func(c *sched.Actor) { s.w.CLR.Collect(c, nil) })
		a.WaitUntil("its redirection", func() bool { return t.Redirected })
		k := call(s)
		if seeded {
			k.Seed = s.managedTop()
		}
		s.call(a, k)
		if im, f := t.M.Func(); im != s.w.Kit.CLR || f.Name != sim.RedirectEntry {
			a.Fault("the target stands in %s", f.Name)
		}
		a.ResumeThread(t.A)
	}
}

// walk adds the walker, a thread that never ran managed code.
func (s *scene) walk(body func(a *sched.Actor)) {
	s.w.S.Go("walker", func(a *sched.Actor) {
		a.WaitUntil("the target to be there", func() bool { return s.there }, s.target.A)
		body(a)
		s.over = true
	})
}

// target's own walk: the target makes the calls where it stands.
func (s *scene) itself(body func(a *sched.Actor)) func() {
	return func() {
		s.truth = s.target.M.Truth(nil)
		body(s.target.A)
		s.there, s.over = true, true
	}
}

// call makes a call and writes down what it reported and what it left behind.
func (s *scene) call(a *sched.Actor, k vm.Call) clr.HRESULT {
	s.callbacks = nil
	inner := k.Receive
	k.Receive = func(cb *vm.Callback) clr.HRESULT {
		c := *cb
		c.Context = slices.Clone(cb.Context)
		s.callbacks = append(s.callbacks, c)
		if inner != nil {
			return inner(cb)
		}
		return clr.S_OK
	}
	s.hr = s.w.CLR.DoStackSnapshot(a, k)
	s.held = append(s.held, s.left(a)...)
	return s.hr
}

// left names what a holds, the thread store of a suspended runtime apart.
func (s *scene) left(a *sched.Actor) (out []string) {
	c := s.w.CLR
	locks := []*sched.Lock{c.CodeHeap, c.PerThread, c.Unwinder}
	if s.target.Hijack != nil {
		locks = append(locks, s.target.Hijack)
	}
	for _, l := range locks {
		if l.Owner() == a {
			out = append(out, l.Name)
		}
	}
	return out
}

// suspended runs body while the profiler has the runtime stopped.
func (s *scene) suspended(a *sched.Actor, body func()) {
	if hr := s.w.CLR.SuspendRuntime(a); hr != clr.S_OK {
		a.Fault("SuspendRuntime: %v", hr)
	}
	body()
	s.w.CLR.Started = true // whatever body made of it
	if hr := s.w.CLR.ResumeRuntime(a); hr != clr.S_OK {
		a.Fault("ResumeRuntime: %v", hr)
	}
}

// cross runs body as another thread's walk needs it: bare on Windows, with the
// runtime stopped elsewhere.
func (s *scene) cross(a *sched.Actor, body func()) {
	if s.w.Variant.Windows() {
		body()
		return
	}
	s.suspended(a, body)
}

// run runs the scene to its end and checks that nothing is left behind.
func (s *scene) run() sched.Result {
	s.t.Helper()
	r := s.w.S.Run()
	if r.Outcome != sched.Done {
		if r.Outcome != sched.Fault {
			s.t.Fatalf("the scene ends in a %v: %s", r.Outcome, tail(&r))
		}
		return r
	}
	expect.True(s.t, len(s.held) == 0, "left locked after the call: %v", s.held)
	expect.Equal(s.t, s.target.A.Suspends(), 0, "the target is left with suspend count")
	expect.True(s.t, !s.w.CLR.Suspending(), "the runtime is left suspended")
	if o := s.w.CLR.ThreadStore.Owner(); o != nil {
		s.t.Errorf("%s is left with the thread store", o.Name())
	}
	return r
}

// answers runs a scene whose walker, if it is not place's, is walk. It must end
// in a fault of these words, and then there is no more to see, or with hr.
func (s *scene) answers(t *testing.T, walk func(*scene, *sched.Actor), fault string,
	hr clr.HRESULT) (r sched.Result, ok bool) {
	t.Helper()
	if walk != nil {
		s.walk(func(w *sched.Actor) { walk(s, w) })
	}
	r = s.run()
	if fault != "" {
		must.True(t, r.Outcome == sched.Fault && strings.Contains(r.Fault, fault),
			"it ends with %v %q, not with %q", r.Outcome, r.Fault, fault)
		return r, false
	}
	if r.Outcome != sched.Done {
		t.Fatalf("%v: %s%s", r.Outcome, r.Fault, tail(&r))
	}
	if s.hr != hr {
		t.Errorf("%v, not %v; %s", s.hr, hr, told(&r))
	}
	return r, true
}

// told is the last answer's line of the trace.
func told(r *sched.Result) (line string) {
	for _, e := range r.Trace {
		if e.Kind == sched.KindNote && strings.HasPrefix(e.Text, "DoStackSnapshot: ") {
			line = e.Text
		}
	}
	return line
}

func tail(r *sched.Result) string {
	var b strings.Builder
	for _, e := range r.Trace[max(0, len(r.Trace)-12):] {
		b.WriteString("\n" + r.Actors[e.Actor] + ": " + e.Text)
	}
	return b.String()
}

// cause is a condition of a row that can hold together with others'.
type cause struct {
	row   string
	set   func(s *scene, a *sched.Actor, k *vm.Call)
	fatal bool
	in    func(v vm.Variant) bool
}

var causes = []cause{
	{row: "1", in: every, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.w.CLR.Detaching = true }},
	{row: "2", in: every, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.w.CLR.Started = false }},
	{row: "3", in: every, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.w.CLR.EventMask = 0 }},
	{row: "5", in: every, set: func(_ *scene, _ *sched.Actor, k *vm.Call) { k.Flags = 2 }},
	{row: "6", in: every, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.w.CLR.NoGC = true }},
	{row: "7", in: every, set: func(s *scene, a *sched.Actor, _ *vm.Call) { holder(s, a) }},
	{row: "9", in: every, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.target.Forbid = 1 }},
	{row: "10", in: windows, fatal: true,
		set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.target.Dead = true }},
	{row: "11u", in: unix, set: func(*scene, *sched.Actor, *vm.Call) {}}, // without SuspendRuntime
	{row: "13", in: windows, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.target.Trap = true }},
	{row: "14a", in: windows, set: func(_ *scene, _ *sched.Actor, k *vm.Call) { k.Lookup = busy(0) }},
	{row: "14b", in: windows, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { young(s) }},
	{row: "16", in: windows,
		set: func(s *scene, _ *sched.Actor, k *vm.Call) {
			st := *s.managedTop()
			unmanaged(s,
				&st)
			k.Seed = &st
		}},
	{row: "18", in: windows,
		set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.target.Except.Inconsistent = true }},
}

// Where two rows' conditions hold at once the earlier one decides.
func TestTablePrecedence(t *testing.T) {
	n := 0
	for _, v := range vm.Variants() {
		for i := range causes {
			for j := i + 1; j < len(causes); j++ {
				first, second := &causes[i], &causes[j]
				if !first.in(v) || !second.in(v) {
					continue
				}
				n++
				t.Run(v.String()+"/"+first.row+" before "+second.row,
					func(t *testing.T) { precedence(t, v, first, second) })
			}
		}
	}
	t.Logf("%d pairs", n)
}

func precedence(t *testing.T, v vm.Variant, first, second *cause) {
	s := newScene(t, v, image.AMD64, inHelper)
	s.walk(func(a *sched.Actor) {
		k := call(s)
		second.set(s, a, &k)
		first.set(s, a, &k)
		s.call(a, k)
	})
	r := s.run()
	if first.fatal {
		expect.True(t, r.Outcome == sched.Fault && strings.Contains(r.Fault, "8013135e"),
			"%v %s", r.Outcome, r.Fault)
		return
	}
	expect.True(t, strings.HasSuffix(told(&r), ", since "+when(first.row)) && len(s.callbacks) == 0,
		"%s", told(&r))
}
