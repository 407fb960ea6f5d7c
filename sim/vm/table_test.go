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
)

// Each row has a condition, a result, a source, and the variants of the CLR that have it. The order of the
// rows is tested by TestConformRows (sim/conform).
func TestTableIsWhole(t *testing.T) {
	for _, r := range vm.Table {
		expect.True(t, r.When != "" && r.Then != "" && r.Source != "" && len(r.Variants()) != 0,
			"row %s is not whole: %+v", r.N, r)
	}
}

// rowTest provokes one row.
type rowTest struct {
	row  string
	name string
	// decided is what the row returns; with goesOn set it returns nothing, and hr
	// is what the walk behind it comes to.
	hr     clr.HRESULT
	goesOn bool
	fault  string // the process ends with it
	in     func(v vm.Variant) bool
	place  func(s *scene)
	walk   func(s *scene, a *sched.Actor) // the walker; nil: place makes the call
	check  func(s *scene) string          // besides; "" is right
}

func call(s *scene) vm.Call { return vm.Call{Thread: s.target.ID, Flags: vm.RegisterContext} }

// plain makes the plain call of the target's walk.
func plain(s *scene, a *sched.Actor) { s.cross(a, func() { s.call(a, call(s)) }) }

// with makes the plain call in a world that set has changed.
func with(set func(s *scene)) func(s *scene, a *sched.Actor) {
	return func(s *scene, a *sched.Actor) { s.cross(a, func() { set(s); s.call(a, call(s)) }) }
}

func withFlags(f uint32) func(s *scene, a *sched.Actor) {
	return func(s *scene, a *sched.Actor) {
		s.cross(a, func() { k := call(s); k.Flags = f; s.call(a, k) })
	}
}

// managedTop is the first managed frame of the truth.
func (s *scene) managedTop() *machine.State {
	for i := range s.truth {
		if s.w.CLR.Codes.Managed(s.truth[i].State.PC) {
			return &s.truth[i].State
		}
	}
	s.t.Fatal("no managed frame")
	return nil
}

// own is a walk of its own by a thread in cooperative mode, with this seed.
func own(k func(s *scene, k *vm.Call)) func(s *scene) {
	return func(s *scene) {
		s.target = s.w.SpawnManaged("target", func(t *sim.Thread) {
			t.Method(sim.Method(1), s.itself(func(a *sched.Actor) {
				c := vm.Call{Flags: vm.RegisterContext}
				k(s, &c)
				s.call(a, c)
			}))
		})
	}
}

// seeded is a walk with a seed that helper needs, changed by f.
func seeded(f func(s *scene, st *machine.State)) func(s *scene, a *sched.Actor) {
	return func(s *scene, a *sched.Actor) {
		st := *s.managedTop()
		f(s, &st)
		k := call(s)
		k.Seed = &st
		s.cross(a, func() { s.call(a, k) })
	}
}

func same(*scene, *machine.State) {}

// unmanaged points a seed at unmanaged code.
func unmanaged(s *scene, st *machine.State) {
	im, f := s.w.Kit.Lookup(sim.Wait)
	st.PC = im.Base + uint64(f.RVA)
}

func windows(v vm.Variant) bool { return v.Windows() }
func unix(v vm.Variant) bool    { return !v.Windows() }
func every(vm.Variant) bool     { return true }

// busy makes the n-th question for the lookup lock, from 0, go unanswered.
func busy(n int) func() bool {
	return func() bool { n--; return n != -1 }
}

var rowTests = []rowTest{
	{row: "1", hr: clr.CORPROF_E_PROFILER_DETACHING, place: inNative,
		walk: with(func(s *scene) { s.w.CLR.Detaching = true })},
	{row: "2", hr: clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, place: inNative,
		walk: with(func(s *scene) { s.w.CLR.Started = false })},
	{row: "3", hr: clr.CORPROF_E_INCONSISTENT_WITH_FLAGS, place: inNative,
		walk: with(func(s *scene) { s.w.CLR.EventMask = 0x200 })},
	{row: "4", name: "of a CLR thread", goesOn: true,
		place: own(func(*scene, *vm.Call) {}), hr: clr.E_FAIL, // cooperative, no seed, empty chain
		check: func(s *scene) string { return none(s) }},
	{row: "4", name: "of a CLR thread in a callback", goesOn: true, hr: clr.S_OK,
		place: func(s *scene) {
			s.target = s.w.SpawnManaged("target", func(t *sim.Thread) {
				t.Method(sim.Method(1), func() {
					t.Framed(sim.JitCompile, s.itself(func(a *sched.Actor) { s.call(a, vm.Call{}) }))
				})
			})
		},
		check: func(s *scene) string { return first(s, s.managedTop()) }},
	{row: "4", name: "of no CLR thread", goesOn: true, hr: clr.S_OK, place: inNative,
		walk: func(s *scene, a *sched.Actor) { s.call(a, vm.Call{}) }, check: none},
	{row: "5", name: "X86_OPTIMIZED", hr: clr.E_INVALIDARG, place: inNative,
		walk: withFlags(vm.X86Optimized)},
	{row: "5", name: "both", hr: clr.E_INVALIDARG, place: inNative, walk: withFlags(3)},
	{row: "5", name: "an unknown bit", hr: clr.E_INVALIDARG, place: inNative, walk: withFlags(0x80000000)},
	{row: "6", name: "a walker that is no managed thread", hr: clr.S_OK, place: inNative,
		walk: func(s *scene, a *sched.Actor) { s.call(a, vm.Call{Flags: 1}) }, check: none},
	{row: "6", name: "no collector yet", hr: clr.S_OK, place: inNative,
		walk: with(func(s *scene) { s.w.CLR.NoGC = true }), check: none},
	{row: "6a", goesOn: true, hr: clr.S_OK, place: inNative,
		walk: func(s *scene, a *sched.Actor) { plain(s, a); plain(s, a) }},
	{row: "7", name: "another has it", hr: clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, place: inNative, walk: held},
	{row: "8", hr: clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, place: whileSuspending},
	{row: "8", name: "once all have stopped", goesOn: true, hr: clr.S_OK, in: windows, place: whileStopped},
	{row: "9", name: "of another", hr: clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, place: inNative,
		walk: func(s *scene, a *sched.Actor) { s.target.Forbid++; plain(s, a) }},
	{row: "9", name: "of its own", hr: clr.CORPROF_E_STACKSNAPSHOT_UNSAFE,
		place: own(func(s *scene, _ *vm.Call) { s.target.Forbid++ })},
	{row: "10", fault: "8013135e", place: inNative, walk: with(func(s *scene) { s.target.Dead = true })},
	{row: "11", hr: clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, place: inNative, walk: tooOften,
		in: func(v vm.Variant) bool { return !v.HasSuspendRuntime() }},
	{row: "11", name: "of .NET 10", fault: "80131506", place: inNative, walk: tooOften,
		in: func(v vm.Variant) bool { return v == vm.Net10Windows }},
	{row: "11u", name: "without a seed", hr: clr.E_NOTIMPL, place: inNative,
		walk: func(s *scene, a *sched.Actor) { s.call(a, call(s)) }},
	{row: "11u", name: "with a seed", hr: clr.E_NOTIMPL, place: inHelper,
		walk: func(s *scene, a *sched.Actor) { k := call(s); k.Seed = s.managedTop(); s.call(a, k) }},
	{row: "12", name: "a wild seed", goesOn: true, hr: clr.S_OK, place: inNative,
		walk:  seeded(func(s *scene, st *machine.State) { *st = machine.State{PC: 0x1234} }),
		check: func(s *scene) string { return first(s, s.managedTop()) }},
	{row: "12", name: "a seed elsewhere on the stack", goesOn: true, hr: clr.S_OK, place: inNative,
		walk:  seeded(func(s *scene, st *machine.State) { *st = s.truth[2].State }),
		check: func(s *scene) string { return first(s, s.managedTop()) }},
	{row: "13u", hr: clr.E_NOTIMPL, place: inNative,
		walk: with(func(s *scene) { s.target.Mode = vm.Cooperative })},
	{row: "13", hr: clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, place: inMethod,
		walk: with(func(s *scene) { s.target.Trap = true })},
	{row: "14a", hr: clr.CORPROF_E_ASYNCHRONOUS_UNSAFE, place: inMethod,
		walk: func(s *scene, a *sched.Actor) { k := call(s); k.Lookup = busy(0); s.call(a, k) }},
	{row: "14b", name: "in managed code", hr: clr.CORPROF_E_STACKSNAPSHOT_UNSAFE,
		place: inMethod, walk: with(young)},
	{row: "14b", name: "in a helper", hr: clr.CORPROF_E_STACKSNAPSHOT_UNSAFE,
		place: inHelper, walk: with(young)},
	{row: "15", goesOn: true, hr: clr.S_OK, place: inMethod, walk: plain,
		check: func(s *scene) string { return first(s, nil) }},
	{row: "16a", name: "of another", hr: clr.CORPROF_E_ASYNCHRONOUS_UNSAFE, in: windows, place: inHelper,
		walk: func(s *scene, a *sched.Actor) {
			k := call(s)
			k.Seed, k.Lookup = s.managedTop(), busy(1)
			s.call(a, k)
		}},
	{row: "16a", name: "of its own", hr: clr.CORPROF_E_ASYNCHRONOUS_UNSAFE,
		place: own(func(s *scene, k *vm.Call) { k.Seed, k.Lookup = s.managedTop(), busy(0) })},
	{row: "16", name: "the seed", hr: clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, in: windows,
		place: inHelper, walk: seeded(unmanaged)},
	{row: "16", name: "an empty seed",
		hr: clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, in: windows, place: inHelper,
		walk: seeded(func(_ *scene, st *machine.State) { *st = machine.State{} })},
	{row: "16", name: "the current context", hr: clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, in: windows,
		place: inHelper, walk: plain},
	{row: "16", name: "the context of a thread that was redirected",
		hr: clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, in: windows, place: inLoop, walk: sent(false)},
	{row: "16", name: "of its own", hr: clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX,
		place: own(func(s *scene, k *vm.Call) { st := s.truth[0].State; unmanaged(s, &st); k.Seed = &st })},
	{row: "17", hr: clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, place: inNative,
		walk: with(func(s *scene) { s.target.Except.Unwinding = true })},
	{row: "17", name: "a seed thrown away", hr: clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, place: inNative,
		walk: func(s *scene, a *sched.Actor) { s.target.Except.Unwinding = true; seeded(same)(s, a) }},
	{row: "18", name: "without a seed", hr: clr.CORPROF_E_STACKSNAPSHOT_UNSAFE, place: inNative,
		walk: with(func(s *scene) { s.target.Except.Inconsistent = true })},
	{row: "18", name: "with a seed", hr: clr.CORPROF_E_STACKSNAPSHOT_UNSAFE,
		place: own(func(s *scene,
			k *vm.Call) {
			k.Seed = s.managedTop()
			s.target.Except.Inconsistent = true
		})},
}

// held makes the plain call while a third thread has the target's hijack lock, as
// one that walks it has.
func held(s *scene, a *sched.Actor) {
	holder(s, a)
	plain(s, a)
}

// holder starts a thread that takes the hijack lock until the walker is done.
func holder(s *scene, a *sched.Actor) {
	s.w.S.Go("holder", func(h *sched.Actor) {
		h.Lock(s.target.Hijack)
		h.WaitUntil("the walker", func() bool { return s.over })
		h.Unlock(s.target.Hijack)
	})
	a.WaitUntil("the holder", func() bool { return s.target.Hijack.Owner() != nil })
}

// whileSuspending is a CLR thread that walks another while a collection tries to
// stop that one.
func whileSuspending(s *scene) {
	s.target = s.w.SpawnManaged("target", func(t *sim.Thread) {
		t.Method(sim.Method(1), func() {
			t.A.WaitUntil("the walk", func() bool { return s.over }) // no safe point before
			t.Poll()
		})
	})
	s.w.SpawnManaged("caller", func(t *sim.Thread) {
		t.PInvoke(sim.NativeWork, func() {
			t.A.WaitUntil("a suspension", s.w.CLR.Suspending)
			s.call(t.A, call(s))
			s.over = true
		})
	})
	s.w.S.Go("collector", func(a *sched.Actor) { s.w.CLR.Collect(a, nil) })
}

// whileStopped is a CLR thread that walks another during a collection.
func whileStopped(s *scene) {
	inNative(s)
	s.w.SpawnManaged("caller", func(t *sim.Thread) {
		t.PInvoke(sim.NativeWork, func() {
			t.A.WaitUntil("the target", func() bool { return s.there })
			stopped := false
			s.w.CLR.Callbacks.GarbageCollectionStarted = func(a *sched.Actor) {
				stopped = true
				a.WaitUntil("the walk", func() bool { return s.over })
			}
			s.w.S.Go("collector", func(a *sched.Actor) { s.w.CLR.Collect(a, nil) })
			t.A.WaitUntil("a collection", func() bool { return stopped })
			s.call(t.A, call(s))
			s.over = true
		})
	})
}

// tooOften suspends the target until no suspension more is to be had.
func tooOften(s *scene, a *sched.Actor) {
	n := 0
	for {
		if _, err := a.SuspendThread(s.target.A); err != nil {
			break
		}
		n++
	}
	s.call(a, call(s))
	if got := s.target.A.Suspends(); got != n {
		s.held = append(s.held, "a suspension")
	}
	for range n {
		a.ResumeThread(s.target.A)
	}
}

// young puts an entry on the Frame chain that is younger than the target's sp.
func young(s *scene) {
	st := s.target.M.State()
	s.target.Chain = append(s.target.Chain,
		vm.Frame{Address: st.R[s.w.Arch.SP()] - 64, Caller: *s.managedTop()})
}

// first reports whether the first callback is of this frame; nil: of the target's
// registers.
func first(s *scene, want *machine.State) string {
	if want == nil {
		want = &s.truth[0].State
	}
	if len(s.callbacks) == 0 {
		return "no callback"
	}
	cb := &s.callbacks[0]
	if sp := s.w.Arch.SP(); cb.IP != want.PC || cb.State.R[sp] != want.R[sp] || cb.Function == 0 {
		return "the first callback is of another frame"
	}
	return ""
}

func none(s *scene) string {
	if len(s.callbacks) != 0 {
		return "there are callbacks"
	}
	return ""
}

// has reports whether the table gives v row n.
func has(t *testing.T, n string, v vm.Variant) bool {
	t.Helper()
	for i := range vm.Table {
		if vm.Table[i].N == n {
			names := vm.Table[i].Variants()
			return names[0] == "all" || slices.Contains(names, v.String())
		}
	}
	t.Fatalf("no row %s", n)
	return false
}

func when(n string) string {
	for i := range vm.Table {
		if vm.Table[i].N == n {
			return vm.Table[i].When
		}
	}
	return "?"
}

// Every row decides as the facts say, on every variant that has it, on both
// architectures; and everything is given back.
func TestTableRows(t *testing.T) {
	for i := range rowTests {
		c := &rowTests[i]
		in := func(v vm.Variant) bool { return has(t, c.row, v) && (c.in == nil || c.in(v)) }
		everywhere(t, c.row+"/"+c.name, in, c.test)
	}
}

// everywhere runs a test on both architectures of each variant that has what it tests.
func everywhere(t *testing.T, name string, in func(vm.Variant) bool,
	test func(*testing.T, vm.Variant, image.Arch)) {
	for _, v := range vm.Variants() {
		for _, a := range []image.Arch{image.AMD64, image.ARM64} {
			if in(v) {
				t.Run(name+"/"+v.String()+"/"+a.String(), func(t *testing.T) { test(t, v, a) })
			}
		}
	}
}

func (c *rowTest) test(t *testing.T, v vm.Variant, a image.Arch) {
	s := newScene(t, v, a, c.place)
	r, ok := s.answers(t, c.walk, c.fault, c.hr)
	if !ok {
		return
	}
	if by := strings.HasSuffix(told(&r), ", since "+when(c.row)); by == c.goesOn {
		t.Errorf("row %s: decided %v: %s", c.row, by, told(&r))
	}
	if !c.goesOn && len(s.callbacks) != 0 {
		t.Errorf("%d callbacks before a refusal", len(s.callbacks))
	}
	if c.check != nil {
		expect.Equal(t, c.check(s), "")
	}
	if c.row == "6a" {
		n := count(&r, "lock CLR per-thread initialisation")
		expect.True(t, n == 1, "per-thread state is set up %d times in two calls", n)
	}
}

func count(r *sched.Result, text string) (n int) {
	for _, e := range r.Trace {
		if e.Text == text {
			n++
		}
	}
	return n
}

// Every row has a test, on each variant that has the row.
func TestEveryRowIsTested(t *testing.T) {
	for i := range vm.Table {
		for _, v := range vm.Variants() {
			if n := vm.Table[i].N; has(t, n, v) &&
				!slices.ContainsFunc(rowTests,
					func(c rowTest) bool { return c.row == n && (c.in == nil || c.in(v)) }) {
				t.Errorf("row %s has no test on %v: add one to rowTests", n, v)
			}
		}
	}
	for _, c := range rowTests {
		expect.True(t, slices.ContainsFunc(vm.Table, func(r vm.Row) bool { return r.N == c.row }),
			"a test is of row %s, which the table does not have", c.row)
	}
}
