package vm_test

import (
	"encoding/binary"
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

// wants is what the walk rules make of the truth: each method's frame (b, c, j),
// and a marker for the first unmanaged frame below managed code (e).
func (s *scene) wants() (out []vm.Callback) {
	managed := false
	for i := range s.truth {
		st := &s.truth[i].State
		kind, id := s.w.CLR.Codes.At(st.PC)
		switch {
		case kind == vm.Method:
			out = append(out, vm.Callback{Function: id, IP: st.PC, State: *st})
		case managed && !s.w.CLR.Codes.Managed(st.PC):
			out = append(out, vm.Callback{IP: st.PC, State: *st})
		}
		managed = s.w.CLR.Codes.Managed(st.PC)
	}
	return out
}

// preserved are the registers that must be right: what functions preserve, and sp.
func preserved(a image.Arch) []int {
	if a == image.ARM64 {
		return []int{19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31}
	}
	return []int{3, 4, 5, 12, 13, 14, 15}
}

// whole compares the callbacks with what the rules make of the truth.
func whole(s *scene) string {
	want := s.wants()
	if len(s.callbacks) != len(want) {
		return "the number of callbacks is not the truth's"
	}
	for i := range want {
		got := &s.callbacks[i]
		if got.Function != want[i].Function || got.IP != want[i].IP {
			return "a callback is of another frame than the truth's"
		}
		for _, r := range preserved(s.w.Arch) {
			if got.State.R[r] != want[i].State.R[r] {
				return "a preserved register is not the truth's"
			}
		}
	}
	if n := len(want); n == 0 || want[n-1].Function != 0 {
		return "the last callback is no marker"
	}
	return ""
}

// mixed is managed code, native code, managed code again by way of the CLR, an IL
// stub and a P/Invoke.
func mixed(s *scene) {
	s.target = s.w.SpawnManaged("target", func(t *sim.Thread) {
		t.Method(sim.Method(1), func() {
			t.PInvoke(sim.NativeWork, func() {
				t.Native(sim.NativeOther, func() {
					t.Managed(sim.Method(2), func() {
						t.Method(sim.HiddenMethod(0), func() {
							t.Method(sim.Method(3), func() { t.Stub(sim.ILStub(0), sim.NativeWork, s.stand) })
						})
					})
				})
			})
		})
	})
}

// handling is a finally clause, run by a helper of the method it belongs to after
// the exception of a method above it.
func handling(s *scene) {
	s.target = s.w.SpawnManaged("target", func(t *sim.Thread) {
		t.Method(sim.Method(1), func() {
			t.Framed(sim.ThrowHelper, func() {
				t.Handler(sim.Method(2), func() { t.Stub(sim.ILStub(0), sim.NativeWork, s.stand) })
			})
		})
	})
}

// handled: the handler's own frame, the CLR's way to it and their marker are left
// out, and the walk continues with the method.
func handled(s *scene) string {
	var got []string
	for _, c := range s.callbacks {
		name := "marker"
		if _, f := s.w.CLR.Codes.Find(c.IP); c.Function != 0 && f != nil {
			name = f.Name
		}
		got = append(got, name)
	}
	if !slices.Equal(got, []string{sim.Method(1), sim.Method(0), "marker"}) {
		return "reported " + strings.Join(got, ", ")
	}
	return ""
}

// redirected is a thread that waits for a collection where it was redirected.
func redirected(s *scene) {
	inMethod(s)
	s.w.S.Go("collector", func(a *sched.Actor) {
		a.WaitUntil("the target", func() bool { return s.there }, s.target.A)
		s.w.CLR.Callbacks.GarbageCollectionStarted = func(a *sched.Actor) {
			a.WaitUntil("the walk", func() bool { return s.over })
		}
		s.w.CLR.Collect(a, nil)
	})
}

// whileRedirected makes the plain call once the target waits.
func whileRedirected(s *scene, a *sched.Actor) {
	a.WaitUntil("a redirected target", func() bool {
		return s.target.Top() != nil && s.target.Top().Resumable && s.target.Mode == vm.Preemptive
	})
	s.call(a, call(s))
}

// atEnd makes a seed whose caller's sp is at the end of the stack, or past it.
func atEnd(past uint64) func(s *scene, st *machine.State) {
	return func(s *scene, st *machine.State) {
		_, high := s.target.M.Bounds()
		next, ok := machine.Unwind(s.w.Arch, s.w.CLR.Codes.Find, *st, true, s.target.M.Word)
		must.True(s.t, ok, "the seed cannot be unwound")
		by := high - next.R[s.w.Arch.SP()] + past
		st.R[s.w.Arch.SP()] += by
		st.R[s.w.Arch.FP()] += by
	}
}

// walkTest provokes one of the walk rules.
type walkTest struct {
	rule  string
	name  string
	hr    clr.HRESULT
	fault string
	in    func(v vm.Variant) bool
	place func(s *scene)
	walk  func(s *scene, a *sched.Actor)
	check func(s *scene) string
}

var walkTests = []walkTest{
	{rule: "a", name: "from the Frame chain", in: every, place: inNative, walk: plain, check: whole},
	{rule: "a", name: "from a seed", in: windows, place: inHelper, walk: seeded(same), check: whole},
	{rule: "a", name: "from where it was redirected", in: windows, place: inLoop,
		walk: sent(true), check: whole},
	{rule: "b", name: "managed code on top", in: windows, place: inMethod, walk: plain, check: whole},
	{rule: "c", name: "an IL stub is walked through", in: every, place: mixed, walk: plain, check: whole},
	{rule: "d", name: "an entry that leads to no managed code", in: every, place: inNative,
		walk: with(func(s *scene) {
			top := *s.target.Top()
			top.Caller = s.truth[0].State
			s.target.Chain = append(s.target.Chain, top)
		}), check: whole},
	{rule: "d", name: "none but such", in: every, place: inNowhere,
		walk: with(func(s *scene) {
			s.target.Chain = append(s.target.Chain, vm.Frame{Address: 1, Caller: s.truth[0].State})
		}), check: none},
	{rule: "e", name: "markers between and below, none on top", in: every,
		place: mixed, walk: plain, check: markers},
	{rule: "f", name: "the next entry of the chain", in: every, place: mixed, walk: plain, check: whole},
	{rule: "g", name: "sp at the end of the stack", hr: clr.E_FAIL, in: windows, place: inHelper,
		walk: seeded(atEnd(0)), check: one},
	{rule: "h", name: "redirected and suspended", hr: clr.E_FAIL, in: windows, place: redirected,
		walk: whileRedirected, check: none},
	{rule: "h", name: "redirected by the profiler's suspension",
		in: func(v vm.Variant) bool { return v.HasSuspendRuntime() }, place: inMethod,
		walk: func(s *scene, a *sched.Actor) {
			s.suspended(a, func() { s.truth = s.target.M.Truth(nil); s.call(a, call(s)) })
		}, check: whole},
	{rule: "i", name: "no managed frame", hr: clr.E_FAIL, in: every,
		place: inNowhere, walk: plain, check: none},
	{rule: "j", name: "managed exception handling is not reported", in: every, place: mixed,
		walk: plain, check: unhidden},
	{rule: "j", name: "what a handler stands on has been unwound", in: every,
		place: handling, walk: plain, check: handled},
	{rule: "k", name: "S_FALSE at the second", hr: clr.CORPROF_E_STACKSNAPSHOT_ABORTED, in: every,
		place: inNative, walk: refusing(2, clr.S_FALSE), check: two},
	{rule: "k", name: "an error at the second", hr: clr.CORPROF_E_STACKSNAPSHOT_ABORTED, in: every,
		place: inNative, walk: refusing(2, clr.E_FAIL), check: two},
	{rule: "k", name: "S_FALSE after the last", in: every, place: inNative,
		walk: refusing(1000, clr.S_FALSE), check: whole},
	{rule: "k", name: "sp nowhere", hr: clr.E_UNEXPECTED, in: windows, place: inHelper, check: none,
		walk: seeded(func(s *scene,
			st *machine.State) {
			st.R[s.w.Arch.SP()], st.R[s.w.Arch.FP()] = 0x1000, 0x1000
		})},
	{rule: "k", name: "a caller nowhere", hr: clr.E_UNEXPECTED, in: windows, place: inHelper, check: one,
		walk: seeded(func(s *scene, st *machine.State) {
			next, _ := machine.Unwind(s.w.Arch, s.w.CLR.Codes.Find, *st, true, s.target.M.Word)
			_, high := s.target.M.Bounds()
			up := high - next.R[s.w.Arch.SP()] - 8 // the frame can be read, its caller's not
			st.R[s.w.Arch.SP()] += up &^ 15
			st.R[s.w.Arch.FP()] += up &^ 15
			s.target.M.Poke(next.R[s.w.Arch.SP()]+up&^15-8, s.managedTop().PC)
		})},
	{rule: "k", name: "ip amid an instruction", fault: "80131506", in: windows,
		place: inHelper, walk: seeded(amid)},
	{rule: "k", name: "ip amid an instruction, by a CLR thread",
		hr: clr.E_UNEXPECTED, in: windows, check: none,
		place: own(func(s *scene, k *vm.Call) { st := s.truth[0].State; amid(s, &st); k.Seed = &st })},
	{rule: "k", name: "sp nowhere, by a CLR thread", hr: clr.E_UNEXPECTED, in: windows,
		check: none, place: own(nowhere)},
	{rule: "k", name: "sp nowhere, off Windows", fault: "segmentation fault", in: unix, place: own(nowhere)},
	{rule: "l", name: "a context", in: every, place: inNative,
		walk: withFlags(vm.RegisterContext), check: contexts},
	{rule: "l", name: "no context", in: every, place: inNative, walk: withFlags(0), check: contextless},
}

// nowhere seeds a thread's own walk with an sp that is no stack's.
func nowhere(s *scene, k *vm.Call) {
	st := s.truth[0].State
	st.R[s.w.Arch.SP()], st.R[s.w.Arch.FP()] = 0x1000, 0x1000
	k.Seed = &st
}

// amid moves a seed one byte into the instruction at its ip.
func amid(s *scene, st *machine.State) { st.PC-- }

func refusing(n int, with clr.HRESULT) func(s *scene, a *sched.Actor) {
	return func(s *scene, a *sched.Actor) {
		k := call(s)
		k.Receive = func(*vm.Callback) clr.HRESULT {
			if len(s.callbacks) == n {
				return with
			}
			return clr.S_OK
		}
		s.cross(a, func() { s.call(a, k) })
	}
}

func exactly(s *scene, n int) string {
	if len(s.callbacks) != n {
		return "another number of callbacks"
	}
	return ""
}

func one(s *scene) string { return exactly(s, 1) }
func two(s *scene) string { return exactly(s, 2) }

func markers(s *scene) string {
	n := 0
	for i := range s.callbacks {
		if s.callbacks[i].Function != 0 {
			continue
		}
		if n++; i == 0 || s.callbacks[i-1].Function == 0 {
			return "a marker on top, or two in a row"
		}
	}
	if n != 2 {
		return "there are not two runs of unmanaged code below managed code"
	}
	return whole(s)
}

func unhidden(s *scene) string {
	for i := range s.callbacks {
		if kind, _ := s.w.CLR.Codes.At(s.callbacks[i].IP); s.callbacks[i].Function != 0 && kind != vm.Method {
			return "a frame that is no method is reported"
		}
	}
	return whole(s)
}

func contexts(s *scene) string {
	for i := range s.callbacks {
		b := s.callbacks[i].Context
		pc, flags := 0xf8, 0x30
		if s.w.Arch == image.ARM64 {
			pc, flags = 0x108, 0
		}
		switch {
		case len(b) != s.w.Variant.ContextSize(s.w.Arch == image.ARM64):
			return "the context has another size"
		case binary.LittleEndian.Uint64(b[pc:]) != s.callbacks[i].IP:
			return "the context has another ip"
		case binary.LittleEndian.Uint32(b[flags:]) != 0:
			return "ContextFlags are set"
		}
	}
	return whole(s)
}

func contextless(s *scene) string {
	for i := range s.callbacks {
		if s.callbacks[i].Context != nil {
			return "a context without a request"
		}
	}
	return whole(s)
}

// Every walk rule, on every variant, on both architectures.
func TestWalkRules(t *testing.T) {
	for i := range walkTests {
		c := &walkTests[i]
		everywhere(t, c.rule+"/"+c.name, c.in, c.test)
	}
}

func (c *walkTest) test(t *testing.T, v vm.Variant, a image.Arch) {
	s := newScene(t, v, a, c.place)
	r, ok := s.answers(t, c.walk, c.fault, c.hr)
	if !ok {
		return
	}
	if why := c.check(s); why != "" {
		t.Errorf("%s: %s", why, told(&r))
	}
}

// The rules of the facts, but for m: what frameInfo is worth after the callback
// is not modelled, since no caller gets one.
func TestEveryWalkRuleIsTested(t *testing.T) {
	for _, rule := range "abcdefghijkl" {
		if !slices.ContainsFunc(walkTests, func(c walkTest) bool { return c.rule == string(rule) }) {
			t.Errorf("rule %c has no test", rule)
		}
	}
}

// runtimeTest is a call of SuspendRuntime or ResumeRuntime.
var runtimeTests = []struct {
	name string
	want clr.HRESULT // on variants that have the call
	call func(s *scene, a *sched.Actor) clr.HRESULT
}{
	{"suspend", clr.S_OK, func(s *scene, a *sched.Actor) clr.HRESULT {
		hr := s.w.CLR.SuspendRuntime(a)
		s.w.CLR.ResumeRuntime(a)
		return hr
	}},
	{"suspend twice", clr.CORPROF_E_SUSPENSION_IN_PROGRESS, func(s *scene, a *sched.Actor) clr.HRESULT {
		s.w.CLR.SuspendRuntime(a)
		hr := s.w.CLR.SuspendRuntime(a)
		s.w.CLR.ResumeRuntime(a)
		return hr
	}},
	{"suspend before the start", clr.CORPROF_E_RUNTIME_UNINITIALIZED,
		func(s *scene, a *sched.Actor) clr.HRESULT {
			s.w.CLR.Started = false
			return s.w.CLR.SuspendRuntime(a)
		}},
	{"resume", clr.S_OK, func(s *scene, a *sched.Actor) clr.HRESULT {
		s.w.CLR.SuspendRuntime(a)
		return s.w.CLR.ResumeRuntime(a)
	}},
	{"resume before the start", clr.CORPROF_E_RUNTIME_UNINITIALIZED,
		func(s *scene, a *sched.Actor) clr.HRESULT {
			s.w.CLR.Started = false
			return s.w.CLR.ResumeRuntime(a)
		}},
	{"suspend in a collection's callback", clr.CORPROF_E_UNSUPPORTED_CALL_SEQUENCE,
		func(s *scene, a *sched.Actor) (hr clr.HRESULT) {
			s.w.CLR.Callbacks.GarbageCollectionStarted = func(a *sched.Actor) {
				hr = s.w.CLR.SuspendRuntime(a)
			}
			s.w.CLR.Collect(a, nil)
			return hr
		}},
	{"suspend after a collection's callback", clr.S_OK, func(s *scene, a *sched.Actor) clr.HRESULT {
		s.w.CLR.Callbacks.GarbageCollectionStarted = func(*sched.Actor) {}
		s.w.CLR.Collect(a, nil)
		hr := s.w.CLR.SuspendRuntime(a)
		s.w.CLR.ResumeRuntime(a)
		return hr
	}},
	{"resume what runs", clr.CORPROF_E_UNSUPPORTED_CALL_SEQUENCE, func(s *scene, a *sched.Actor) clr.HRESULT {
		return s.w.CLR.ResumeRuntime(a)
	}},
}

func TestSuspendRuntime(t *testing.T) {
	for _, c := range runtimeTests {
		for _, v := range vm.Variants() {
			t.Run(c.name+"/"+v.String(), func(t *testing.T) {
				s := newScene(t, v, image.AMD64, inMethod)
				s.walk(func(a *sched.Actor) { s.hr = c.call(s, a) })
				s.run()
				if !v.HasSuspendRuntime() {
					expect.True(t, s.hr.Failed(), "%v by a CLR without the call", s.hr)
					return
				}
				expect.Equal(t, s.hr, c.want)
			})
		}
	}
}
