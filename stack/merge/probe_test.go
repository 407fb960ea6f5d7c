package merge

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/expect"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
	"github.com/seedwalk/seedwalk/unwind/arm64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// block makes frames from a string: l is a frame of the C library, s a signal frame, m an interrupted managed
// frame, and c a managed frame that called. Each other letter is a function of the runtime, r the usual wait.
func block(shape string) (out []Frame) {
	for i, c := range shape {
		f := Frame{IP: uint64(c) << 8, Kind: unwind.KindNative, Module: 1}
		switch c {
		case 'l':
			f.Module, f.IP = 0, uint64(i)
		case 's':
			f.Kind = unwind.KindSignal
		case 'm', 'c':
			f.Kind, f.Exact, f.Module = unwind.KindManaged, c == 'm', -1
		}
		out = append(out, f)
	}
	return out
}

func TestProbe(t *testing.T) {
	m := merger(fs.Build(fs.Root))
	for _, step := range []struct {
		name, shape string
		want        int
	}{
		{"an unknown wait is the program's", "llrRoc", 0},
		{"stopped by the runtime's signal: certain, and learned", "llrRosm", 6},
		{"the same wait in the helper that polls", "llrRoc", 5},
		{"the same wait deeper in the runtime", "llrRooc", 4},
		{"the same wait below the C library", "llrRlc", 4},
		{"another wait", "llqQoc", 0},
		{"a signal above native code is the program's", "llrRoslc", 4},
		{"a signal frame above a managed caller", "llxXosc", 0},
		{"managed on top", "mc", 0},
		{"a thread of the runtime's own", "llrRo", 4},
		{"the same, deep", "llrRoool", 4},
		{"a thread of the runtime's own in another wait", "llqQo", 0},
		{"in the runtime itself", "rRoc", 0},
		{"too short", "lrc", 0},
		{"nothing", "", 0},
	} {
		expect.Equal(t, m.probe(block(step.shape), clr.WakeUnknown), step.want, "%s: frames", step.name)
	}
}

// hijackStub is the address of block's frames o.
type hijackStub struct{ at uint64 }

func (h hijackStub) InReturnHook(a unwind.Address) bool { return a.IP == h.at }

// A thread that went to the wait through a replaced return address: the stub belongs to the suspension too,
// and only the walker distinguishes it from other code of the runtime.
func TestProbeOfHijacks(t *testing.T) {
	for _, c := range []struct {
		name, shape string
		at          uint64
		want        int
	}{
		{"the stub", "llrRooc", 'o' << 8, 6},
		{"another function of the runtime", "llrRooc", 'p' << 8, 4},
		{"the stub above other code of the runtime", "llrRopc", 'o' << 8, 4},
		{"another wait in the stub", "llqQooc", 'o' << 8, 0},
	} {
		m := merger(fs.Build(fs.Root))
		m.probe(block("llrRosm"), clr.WakeUnknown) // the wait is learned
		m.hooks = hijackStub{c.at}
		expect.Equal(t, m.probe(block(c.shape), clr.WakeUnknown), c.want, "%s: frames", c.name)
	}
}

// A wait counts as the suspension's if the end of suspensions ended it often enough, and always.
func TestProbeOfTheWoken(t *testing.T) {
	const woken, not, unknown = clr.Woken, clr.WakeNot, clr.WakeUnknown
	for _, c := range []struct {
		name  string
		wakes []clr.Wake
		want  int // of the last
	}{
		{"often enough", []clr.Wake{woken, woken, woken}, 5},
		{"once too few", []clr.Wake{woken, woken}, 0},
		{"left asleep once", []clr.Wake{woken, woken, not, woken, woken, woken}, 0},
		{"left asleep when it was believed",
			[]clr.Wake{woken, woken, woken, woken, not, woken, woken, woken}, 0},
		{"left asleep at first", []clr.Wake{not, woken, woken, woken}, 0},
		{"left asleep at first, then woken ever since",
			[]clr.Wake{not, woken, woken, woken, woken, woken}, 0},
		{"unknown", []clr.Wake{unknown, unknown, unknown, unknown}, 0},
		{"unknown in between", []clr.Wake{woken, unknown, woken, unknown, woken}, 5},
		{"always asleep", []clr.Wake{not, not, not, not}, 0},
	} {
		m, got := merger(fs.Build(fs.Root)), 0
		for _, w := range c.wakes {
			m.probe(block("llqQoc"), woken) // another wait meanwhile
			got = m.probe(block("llrRoc"), w)
		}
		expect.Equal(t, got, c.want, "%s: frames", c.name)
	}
}

// A certain wait is neither refuted nor replaced by an uncertain one.
func TestWaitsThatAreCertain(t *testing.T) {
	var w waits
	w.observe(wait{1, 1}, clr.WakeNot)
	w.learn(wait{1, 1})
	for i := range uint64(100) {
		w.observe(wait{i, 1}, clr.WakeNot)
	}
	expect.True(t, w.has(wait{1, 1}), "a wait that is certain is forgotten")
}

func TestWaitsAreBounded(t *testing.T) {
	var w waits
	for i := range uint64(100) {
		w.learn(wait{i, i})
	}
	for i := range uint64(100) {
		w.observe(wait{i, 200}, clr.Woken)
	}
	expect.True(t, w.has(wait{0, 0}) && !w.has(wait{99, 99}) && !w.has(wait{99, 200}),
		"%v is remembered", w.known)
}

// above is a Managed that knows only the caller's stack pointer, or nothing if it is 0.
type above uint64

func (a above) Step(s *unwind.State, _ *memory.Window, _ *unwind.Bounds, _ *unwind.Frame) unwind.Stop {
	if a == 0 {
		return unwind.NoInfo
	}
	s.Regs.SetSP(uint64(a))
	s.Reached(false, unwind.TrustUnwindInfo)
	return unwind.StopNone
}

func (above) Hijacked(uint64, uint64) (uint64, bool) { return 0, false }

// The walk is at a method's frame with SP 1000h; the CLR's next frame is of that method too. Are they one?
func TestSame(t *testing.T) {
	const sp, fp, method, other = 0x1000, 0x1800, 7, 8
	at := func(sp, fp uint64) clr.SnapshotFrame { return clr.SnapshotFrame{Function: method, SP: sp, FP: fp} }
	marker := func(fp uint64) clr.SnapshotFrame { return clr.SnapshotFrame{SP: 0x3000, FP: fp} }
	for _, c := range []struct {
		name   string
		frames []clr.SnapshotFrame
		fid    clr.FunctionID
		tables Managed
		want   bool
	}{
		{"the same SP", []clr.SnapshotFrame{at(sp, 0x9999), marker(0)}, method, nil, true},
		{"the same SP, another method", []clr.SnapshotFrame{at(sp, fp), marker(0)}, other, nil, false},
		{"another SP and FP", []clr.SnapshotFrame{at(0x1100, 0x9999), marker(0)},
			method, above(0x1810), false},
		{"grown by stackalloc", []clr.SnapshotFrame{at(0x1100, fp), marker(0x4000)}, method,
			above(0x1810), true},
		{"grown by stackalloc, without tables",
			[]clr.SnapshotFrame{at(0x1100, fp), marker(0x4000)}, method, nil, true},
		{"grown by stackalloc, not in the tables",
			[]clr.SnapshotFrame{at(0x1100, fp), marker(0x4000)}, method, above(0), true},
		{"grown by stackalloc, the last frame of the report",
			[]clr.SnapshotFrame{at(0x1100, fp)}, method, nil, false},
		{"recursion without frame pointers", []clr.SnapshotFrame{at(0x1100, fp), at(0x1130, fp), marker(fp)},
			method, above(0x1030), false},
		{"recursion without frame pointers and tables",
			[]clr.SnapshotFrame{at(0x1100, fp), at(0x1130, fp), marker(fp)}, method, nil, false},
		{"a funclet below its method", []clr.SnapshotFrame{at(0x1400, fp), marker(0x4000)},
			method, above(0x1030), false},
		{"the CLR's frame is further down", []clr.SnapshotFrame{at(0xff0, fp), marker(0x4000)},
			method, above(0x1810), false},
		{"a frame that begins at its caller's SP", []clr.SnapshotFrame{at(0x1100, fp), marker(0x4000)},
			method, above(0x1100), false},
		{"its SP is above its FP", []clr.SnapshotFrame{at(0x1900, fp), marker(0x4000)}, method, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := New(amd64.New(), nil)
			m.SetManaged(c.tables)
			m.in = &clr.Capture{Frames: c.frames}
			m.regs = context.Registers{Arch: context.ArchAMD64}
			m.regs.SetIP(0x5000)
			m.regs.SetSP(sp)
			m.regs.SetFP(fp)
			m.at.Regs = &m.regs
			at, regs := m.at, m.regs
			expect.Equal(t, m.same(0, c.fid, true), c.want)
			expect.True(t, m.at == at && m.regs == regs, "the question has moved the walk")
		})
	}
}

// standing returns a merger whose walk is at sp and fp.
func standing(sp, fp uint64) *Merger {
	m := New(amd64.New(), nil)
	m.in = &clr.Capture{}
	m.regs.SetIP(0x5000)
	m.regs.SetSP(sp)
	m.regs.SetFP(fp)
	m.at.Regs = &m.regs
	return m
}

// A stub without a frame lies below the frame that called it.
func TestFrameless(t *testing.T) {
	for _, c := range []struct {
		name   string
		sp, fp uint64 // of the CLR's frame
		want   bool
	}{
		{"called by it", 0x1008, 0x1800, true},
		{"at its SP", 0x1000, 0x1800, true},
		{"above it", 0xff8, 0x1800, false},
		{"another frame pointer", 0x1008, 0x1900, false},
		{"too far away", 0x1000 + maxStub + 16, 0x1800, false},
	} {
		expect.Equal(t, standing(0x1000, 0x1800).frameless(&clr.SnapshotFrame{SP: c.sp, FP: c.fp}), c.want,
			c.name)
	}
	expect.True(t, !standing(0x1000, 0).frameless(&clr.SnapshotFrame{SP: 0x1008}), "without a frame pointer")
}

// The runtime replaces a return address in its slot. If the slot has another word, the frame is not hijacked.
func TestReplacedInItsSlot(t *testing.T) {
	const stub = 0x7ff1_0000_0000
	for _, c := range []struct{ word, want uint64 }{{stub, 0x5432}, {0x5432, stub}} {
		w := fs.BuildFor(context.ArchAMD64, fs.Root, fs.Native, fs.Managed, fs.Native)
		m, slot := merger(w), w.Truth[1].Slot
		store(w, slot, c.word)
		giveTables(m, truth{slot: slot, ra: 0x5432})
		m.in = &w.Capture
		m.mem.Reset(w.Capture.Stack.Addr, w.Capture.Stack.Data)
		m.to.Arch = context.ArchAMD64
		m.to.SetIP(stub)
		m.to.SetSP(slot + 8)
		m.unhijack()
		expect.Equal(t, m.to.IP(), c.want, "the slot has %#x", c.word)
	}
}

// A frame that the CLR reported at the same SP is the hijacked caller, unless the return address is managed.
// After a call at the end of managed code, the return address is just behind that code.
func TestHijackedAtSameSP(t *testing.T) {
	const end = 0x6000
	for _, c := range []struct {
		ip   uint64
		want bool
	}{{end - 1, false}, {end, false}, {end + 1, true}} {
		m := standing(0x1000, 0)
		m.SetTable(module.NewTable(1, nil, []memory.Range{{Start: end - 0x1000, End: end}}))
		m.regs.SetIP(c.ip)
		expect.Equal(t, m.hijacked(&clr.SnapshotFrame{SP: 0x1000}), c.want, "a return address of %#x", c.ip)
	}
}

// On ARM64 a guess knows only a lower limit of SP. The frame pointer then shows that the CLR's frame is the
// hijacked caller.
func TestHijackedAfterGuess(t *testing.T) {
	table, im := peTable(t, image.ARM64)
	start := im.Base + uint64(im.Funcs[0].RVA)
	for _, c := range []struct {
		name   string
		ip     uint64
		fp, of uint64 // of the walk, and of the CLR's frame
		trust  unwind.Trust
		want   bool
	}{
		{"its frame pointer", start, 0x1800, 0x1800, unwind.TrustFramePointer, true},
		{"another frame pointer", start, 0x1800, 0x1900, unwind.TrustFramePointer, false},
		{"no frame pointer", start, 0, 0, unwind.TrustFramePointer, false},
		{"no guess", start, 0x1800, 0x1800, unwind.TrustCFI, false},
		{"a return address", start + 4, 0x1800, 0x1800, unwind.TrustFramePointer, false},
	} {
		m := New(arm64.New(), nil)
		m.SetTable(table)
		m.regs.SetIP(c.ip)
		m.regs.SetSP(0x1000)
		m.regs.SetFP(c.fp)
		m.at = unwind.State{Regs: &m.regs, Trust: c.trust}
		expect.Equal(t, m.hijacked(&clr.SnapshotFrame{SP: 0x1100, FP: c.of}), c.want, c.name)
	}
}

// A wrong guess leaves nothing behind: no frame, no count, and SP where it began.
func TestTakeBack(t *testing.T) {
	m := standing(0x900, 0)
	m.out = []Frame{{SP: 0x80}, {SP: 0x100, Kind: unwind.KindStub}, {SP: 0x200},
		{SP: 0x300, Kind: unwind.KindManaged}}
	m.res, m.guess = Result{N: 4, Hidden: 3}, 1
	if m.dropGuess(); m.res.N != 1 || m.res.Hidden != 1 || m.guess != -1 || m.sp() != 0x100 {
		t.Errorf("%+v, guess %d, SP %#x", m.res, m.guess, m.sp())
	}
}

// The first gap of a stack says why it is not complete; a later refusal does not replace it.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		hr     clr.HRESULT
		gap    Gap
		frames []clr.SnapshotFrame
		want   bool
	}{
		{"refused", clr.E_FAIL, GapNone, nil, true},
		{"not refused", clr.S_OK, GapNone, nil, false},
		{"behind another gap", clr.E_FAIL, GapNoInfo, nil, false},
		{"frames were reported all the same", clr.E_FAIL, GapNone, []clr.SnapshotFrame{{Function: 7}}, false},
	} {
		m := standing(0x1000, 0)
		m.in.Result, m.in.Frames, m.res.Gap = c.hr, c.frames, c.gap
		expect.Equal(t, m.refused(), c.want, c.name)
	}
}

// Only a leaf walk that ended in fresh code gets another verdict.
func TestRejudge(t *testing.T) {
	for _, c := range []struct {
		name       string
		written, n int
		was, want  seed.Verdict
	}{
		{"fresh code on top", 0, 0, seed.Truncated, seed.NotNeeded},
		{"below unmanaged frames", 0, 2, seed.Truncated, seed.Found},
		{"below the leaf", 3, 2, seed.Truncated, seed.Truncated},
		{"another verdict", 0, 2, seed.Unsafe, seed.Unsafe},
	} {
		m := standing(0x1000, 0)
		m.res.N, m.res.Verdict = c.written, c.was
		m.rejudge(c.n)
		expect.Equal(t, m.res.Verdict, c.want, c.name)
	}
}
