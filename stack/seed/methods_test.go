package seed

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// script is a Methods with the results of its first steps.
type script struct {
	steps []step
	calls int
	exact bool // of the first frame asked about
}

// step is a caller, or the stop that replaces it.
type step struct {
	ip, sp uint64
	stop   unwind.Stop
}

func (m *script) Caller(s *unwind.State, _ *memory.Window, _ *unwind.Bounds) unwind.Stop {
	if m.calls++; m.calls == 1 {
		m.exact = s.Exact
	}
	if m.calls > len(m.steps) {
		return unwind.NoInfo
	}
	c := m.steps[m.calls-1]
	if c.stop == unwind.StopNone {
		s.Regs.SetIP(c.ip)
		s.Regs.SetSP(c.sp)
		s.Regs.SetFP(c.sp + 16)
		s.Exact = false
	}
	return c.stop
}

// What the unwind data of methods say of a seed.
func TestMethods(t *testing.T) {
	const next, other = methodAt + 0x200, nativeAt + callAt
	for _, c := range []struct {
		name  string
		steps []step
		want  bool
		calls int
	}{
		{"unknown", nil, true, 1},
		{"no call before it", []step{{stop: unwind.BadInfo}}, false, 1},
		{"a frame that is too small", []step{{stop: unwind.NoProgress}}, false, 1},
		{"a frame past the stack", []step{{stop: unwind.OutOfStack}}, false, 1},
		{"a frame that is not in a whole copy", []step{{stop: unwind.Unreadable}}, false, 1},
		{"no return address", []step{{stop: unwind.NullReturn}}, false, 1},
		{"unsupported", []step{{stop: unwind.Unsupported}}, true, 1},
		{"two methods", []step{{ip: next, sp: sp + 64}}, true, 2},
		{"the second is interrupted", []step{{ip: next, sp: sp + 64}, {stop: unwind.BadInfo}}, true, 2},
		{"the second is too small", []step{{ip: next, sp: sp + 64}, {stop: unwind.NoProgress}}, false, 2},
		{"a caller in no code", []step{{ip: 0x5550, sp: sp + 64}}, false, 1},
		{"a caller on the stack", []step{{ip: sp + 16, sp: sp + 64}}, false, 1},
		{"a caller off the stack", []step{{ip: next, sp: stackEnd + 64}}, false, 1},
		{"a caller with a misaligned stack pointer", []step{{ip: next, sp: sp + 60}}, false, 1},
		{"unmanaged code after a call", []step{{ip: other, sp: sp + 64}}, true, 1},
		{"unmanaged code after no call", []step{{ip: other + 4, sp: sp + 64}}, false, 1},
		{"the hijack stub", []step{{ip: nativeAt + functAt, sp: sp + 64}}, true, 1},
	} {
		for _, a := range context.Arches {
			x, m := newScene(a), &script{steps: c.steps}
			x.Methods = m
			for _, to := range c.steps {
				x.put(to.sp+24, methodAt+0x100) // its frame record
			}
			expect.Equal(t, x.confirmed(), c.want, "%v, %s", a, c.name)
			expect.Equal(t, m.calls, c.calls, "%v, %s: steps", a, c.name)
		}
	}
}

// learner is a script that learns what it is asked for.
type learner struct {
	script
	learned int
}

func (l *learner) LearnMissed() bool { l.learned++; return true }

// A strict witness refuses a seed if a method below is not known. Then it can be learned.
func TestStrict(t *testing.T) {
	const next = methodAt + 0x200
	for _, c := range []struct {
		name       string
		strict     bool
		steps      []step
		want, more bool
	}{
		{"unknown", true, nil, false, true},
		{"unknown, not strict", false, nil, true, false},
		{"the second is unknown", true, []step{{ip: next, sp: sp + 64}}, false, true},
		{"unsupported", true, []step{{stop: unwind.Unsupported}}, true, false},
		{"wrong", true, []step{{stop: unwind.BadInfo}}, false, false},
		{"known", true, []step{{ip: nativeAt + callAt, sp: sp + 64}}, true, false},
	} {
		x, l := newScene(context.ArchAMD64), &learner{script: script{steps: c.steps}}
		x.Methods, x.Strict = l, c.strict
		expect.Equal(t, x.confirmed(), c.want, "%s: confirmed", c.name)
		more, again := x.Learn(), x.Learn()
		expect.True(t, more == c.more && !again && l.learned == 1 == more, "%s: learns %v, again %v",
			c.name, more, again)
	}
}

// A method on top is checked on request. If one of its callers is unknown, that is no contradiction.
func TestTop(t *testing.T) {
	for _, a := range context.Arches {
		for _, c := range []struct {
			top  bool
			stop unwind.Stop
			want Verdict
		}{
			{true, unwind.BadInfo, Unsafe},
			{true, unwind.NoInfo, NotNeeded},
			{false, unwind.BadInfo, NotNeeded},
		} {
			x := newScene(a)
			x.Methods = &script{steps: []step{{ip: methodAt + 0x200, sp: sp + 64}, {stop: c.stop}}}
			if c.stop == unwind.BadInfo {
				x.Methods = &script{steps: []step{{stop: c.stop}}}
			}
			x.put(sp+64+24, methodAt+0x100) // the caller's frame record
			x.Top, x.Strict, x.s.Exact = c.top, true, true
			x.regs.SetFP(0) // a prolog has no record yet
			o := Find(&x.p, x.u, &x.s, memory.New(memory.Run{Addr: stackLow, Data: x.stack}), &x.bounds,
				make([]unwind.Frame, 8), &x.Witness)
			expect.Equal(t, o.Verdict, c.want, "%v, top %v, %v", a, c.top, c.stop)
		}
	}
}

// On ARM64, the caller of a method has a frame record, also if the runtime has replaced its address.
func TestCallersRecord(t *testing.T) {
	for _, ip := range []uint64{methodAt + 0x200, nativeAt + functAt, nativeAt + callAt} {
		for _, a := range context.Arches {
			for _, record := range []uint64{methodAt + 0x100, 0x5555} {
				x := newScene(a)
				x.Methods = &script{steps: []step{{ip: ip, sp: sp + 64}}}
				x.put(sp+64+24, record)
				want := a == context.ArchAMD64 || record != 0x5555 || ip == nativeAt+callAt
				expect.Equal(t, x.confirmed(), want, "%v, to %#x, its record to %#x", a, ip, record)
			}
		}
	}
}

// On ARM64, a method above unmanaged frames has a frame record.
func TestRecordAboveUnmanaged(t *testing.T) {
	for _, a := range context.Arches {
		for _, fp := range []uint64{sp + 144, sp + 112} {
			x := newScene(a)
			x.Methods = &script{steps: []step{{ip: nativeAt + callAt, sp: sp + 64}}}
			x.u = &arrival{x.u, methodAt, sp + 128, fp, unwind.TrustUnwindInfo}
			x.put(fp+8, methodAt+0x100)
			want := a == context.ArchAMD64 || fp > sp+128
			expect.Equal(t, x.confirmed(), want, "%v, its frame pointer is %d", a, int64(fp-sp-128))
		}
	}
}

// A method that is newer than the module table is known to the CLR.
func TestNewMethod(t *testing.T) {
	for _, known := range []bool{true, false} {
		x := newScene(context.ArchAMD64)
		x.Methods = &script{steps: []step{{ip: 0x6000_0000_0000, sp: sp + 64}}}
		x.p.IsMethod = func(ip uint64) bool { return known && ip == 0x6000_0000_0000-1 }
		expect.Equal(t, x.confirmed(), known, "known to the CLR")
	}
}

// The copy of a stack may end early.
func TestCopyEndsEarly(t *testing.T) {
	x := newScene(context.ArchAMD64)
	x.Methods = &script{steps: []step{{stop: unwind.Unreadable}}}
	x.stack = x.stack[:len(x.stack)-8]
	expect.True(t, x.confirmed(), "a word that was not copied refuses a seed")
	x.Methods = &script{steps: []step{{stop: unwind.Unreadable}}}
	x.bounds = unwind.Bounds{}
	expect.True(t, x.confirmed(), "a word that was not copied of a stack of unknown size refuses a seed")
}

// The frame below a stub that is entered without a call was interrupted.
func TestBelowStub(t *testing.T) {
	for _, at := range []uint64{callAt, 0xf0} {
		x, m := newScene(context.ArchAMD64), &script{}
		x.Methods, x.frames = m, []unwind.Frame{frameAt(at)}
		x.frames[0].Exact = true
		x.p.Redirect = managed.Places{}
		x.p.Redirect.Add(memory.Range{Start: nativeAt + callAt - 0x20, End: nativeAt + callAt - 0x10})
		x.confirmed()
		expect.Equal(t, m.exact, at == callAt, "the frame below %#x is exact", at)
	}
}

// outside is a walker that finds one sure frame above a frame in no module.
type outside struct {
	unwind.Walker
	ip, fp uint64
}

func (w *outside) Walk(s *unwind.State, _ *memory.Window, _ *unwind.Bounds,
	out []unwind.Frame) unwind.Result {
	out[0] = unwind.Frame{IP: s.Regs.IP(), SP: s.Regs.SP(), FP: s.Regs.FP(), Trust: unwind.TrustUnwindInfo}
	out[1] = unwind.Frame{IP: w.ip, SP: sp + 128, FP: w.fp, Module: -1, Trust: unwind.TrustOutside}
	return unwind.Result{N: 2, Stop: unwind.NoInfo}
}

// On ARM64, code in no module that unmanaged code returns to has a frame record. On both architectures, its
// address is possible.
func TestReturnOutside(t *testing.T) {
	const code = 0x5678_9abc_def0
	for _, c := range []struct {
		ip, fp     uint64
		x64, arm64 bool
	}{
		{code, sp + 128, true, true},
		{code, sp + 256, true, true},
		{code, sp + 120, true, false},
		{code, sp + 132, true, false},
		{code, stackEnd, true, false},
		{code, 0xe8d1_bfe5_eb93_14e8, true, false}, // a word of an old frame
		{sp + 64, sp + 128, false, false},
	} {
		for _, a := range context.Arches {
			x := newScene(a)
			x.Methods = &script{steps: []step{{ip: nativeAt + callAt, sp: sp + 64}}}
			x.u = &outside{x.u, c.ip, c.fp}
			want := c.x64
			if a == context.ArchARM64 {
				want = c.arm64
			}
			expect.Equal(t, x.confirmed(), want, "%v, at %#x, frame pointer %#x", a, c.ip, c.fp)
		}
	}
}

// Methods that return to each other for ever do not make the walk endless.
func TestChainIsBounded(t *testing.T) {
	x, m := newScene(context.ArchARM64), &script{steps: make([]step, 10*longestChain)}
	for i := range m.steps {
		m.steps[i] = step{ip: methodAt, sp: sp}
	}
	x.put(sp+24, methodAt+0x100)
	x.Methods = m
	expect.True(t, x.confirmed(), "a long chain")
	expect.Equal(t, m.calls, longestChain, "steps")
}
