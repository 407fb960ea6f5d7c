package merge

import (
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/expect"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// truth steps over managed frames by a world's truth, as the runtime's tables would. It refuses the methods
// in unknown.
type truth struct {
	w       *fs.World
	unknown map[clr.FunctionID]bool
	lie     uint64 // subtracted from every stack pointer
	slot    uint64 // the hijacked slot, and its true value, as the Thread keeps them
	ra      uint64
	guess   bool // it marks its frames as found by a guess
}

func (t *truth) trust() unwind.Trust {
	if t.guess {
		return unwind.TrustFramePointer
	}
	return unwind.TrustUnwindInfo
}

// caller finds the frame at ip and sp, and returns its caller's registers. ra is read from the stack.
func (t *truth) caller(ip, sp uint64, mem *memory.Window) (ra, callerSP, fp uint64, ok bool) {
	for i := range len(t.w.Truth) - 1 {
		here, next := &t.w.Truth[i], &t.w.Truth[i+1]
		if here.SP != sp || here.IP != ip || t.unknown[here.Function] {
			continue
		}
		if ra = next.IP; here.Slot != 0 {
			ra, _ = mem.Word(here.Slot)
		}
		return ra, next.SP - t.lie, next.FP, true
	}
	return 0, 0, 0, false
}

func (t *truth) Hijacked(thread, slot uint64) (uint64, bool) {
	return t.ra, thread == 0x77 && slot == t.slot
}

// Step implements Managed. An unknown frame must leave s unchanged.
func (t *truth) Step(s *unwind.State, mem *memory.Window, _ *unwind.Bounds, f *unwind.Frame) unwind.Stop {
	ra, sp, fp, ok := t.caller(s.Regs.IP(), s.Regs.SP(), mem)
	if leaf := s.Regs.SP() == t.w.Truth[0].SP; !ok || s.Exact && !leaf { // all others are at return addresses
		return unwind.NoInfo
	}
	s.Regs.ReturnTo(ra)
	s.Regs.SetSP(sp)
	s.Regs.SetFP(fp)
	s.Reached(false, t.trust())
	return unwind.StopNone
}

// giveTables gives m the tables of its architecture.
func giveTables(m *Merger, t truth) { m.SetManaged(&t) }

// refuse makes the CLR report nothing.
func refuse(w *fs.World) {
	w.Capture.Result, w.Capture.Frames = clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, nil
}

var thrown = []fs.Kind{fs.Root, fs.Framed, fs.Managed, fs.Managed, fs.Framed, fs.Hidden,
	fs.ILStub, fs.Hidden, fs.Native}

func TestRefusedYetComplete(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		w := fs.BuildFor(arch, thrown...)
		refuse(w)
		m, out := merger(w), make([]Frame, 256)
		giveTables(m, truth{w: w})
		r := m.Merge(&w.Capture, out)
		expect.True(t, r.Complete() && r.Doubtful == 0 && r.Hidden == 5 && r.Managed == 0, "%+v", r)
		check(t, w, out[:r.N])
		for i := range out[:r.N] {
			expect.True(t, !out[i].Trust.Doubtful(), "frame %d is doubtful: %+v", i, out[i])
		}
		m.SetManaged(nil)
		r = m.Merge(&w.Capture, out)
		expect.True(t, r.Gap == GapCLRRefused && r.Doubtful != 0, "without tables: %+v", r)
	})
}

// A report that ends early is completed by the tables, wherever it ends. A method that they do not know
// becomes a gap.
func TestCutYetComplete(t *testing.T) {
	mixed := []fs.Kind{fs.Root, fs.Native, fs.Framed, fs.Managed, fs.Managed, fs.Native, fs.Native,
		fs.Managed, fs.Hidden, fs.Managed, fs.Native}
	onBoth(t, func(t *testing.T, arch context.Arch) {
		whole := fs.BuildFor(arch, mixed...)
		cuts, called := 0, 0
		for n := 1; n < len(whole.Capture.Frames); n++ {
			w := fs.BuildFor(arch, mixed...)
			w.Capture.Frames, w.Capture.Result = w.Capture.Frames[:n], clr.CORPROF_E_STACKSNAPSHOT_ABORTED
			if w.Capture.Frames[n-1].Marker() {
				continue
			}
			cuts++
			m, out := merger(w), make([]Frame, 256)
			giveTables(m, truth{w: w})
			r := m.Merge(&w.Capture, out)
			expect.True(t, r.Complete() && r.Doubtful == 0, "behind %d: %+v", n, r)
			check(t, w, out[:r.N])
			giveTables(m, truth{w: w, unknown: map[clr.FunctionID]bool{w.Capture.Frames[n-1].Function: true}})
			r = m.Merge(&w.Capture, out)
			expect.True(t, r.Gap == GapCLRCut, "behind %d, which is not in the tables: %+v", n, r)
			if root := lowest(whole); n < len(whole.Capture.Frames)-1 &&
				root != w.Capture.Frames[n-1].Function {
				giveTables(m, truth{w: w, unknown: map[clr.FunctionID]bool{root: true}})
				if r := m.Merge(&w.Capture, out); r.Gap != GapCLRCut {
					t.Errorf("behind %d, the lowest method is not in the tables: %+v", n, r)
				}
			}
			if n > 1 && !w.Capture.Frames[n-2].Marker() { // the walk arrives at the last only by the report
				giveTables(m, truth{w: w,
					unknown: map[clr.FunctionID]bool{w.Capture.Frames[n-2].Function: true}})
				if r := m.Merge(&w.Capture, out); !r.Complete() {
					t.Errorf("behind %d, the method that it called is not in the tables: %+v", n, r)
				}
				called++
			}
			m.SetManaged(nil)
			r = m.Merge(&w.Capture, out)
			expect.True(t, r.Gap == GapCLRCut, "behind %d, without tables: %+v", n, r)
		}
		expect.True(t, cuts >= 3 && called >= 1,
			"%d cuts, %d behind a method that is not in the tables", cuts, called)
	})
}

// lowest is the method that was called first.
func lowest(w *fs.World) (f clr.FunctionID) {
	for i := range w.Capture.Frames {
		if !w.Capture.Frames[i].Marker() {
			f = w.Capture.Frames[i].Function
		}
	}
	return f
}

func TestRefusedAndNotKnown(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for _, c := range []struct {
			name string
			t    truth
		}{
			{"one method is not in the tables", truth{unknown: map[clr.FunctionID]bool{0x1003: true}}},
			{"the tables lead down the stack", truth{lie: 0x1000}},
		} {
			w := fs.BuildFor(arch, thrown...)
			refuse(w)
			c.t.w = w
			m, out := merger(w), make([]Frame, 256)
			giveTables(m, c.t)
			r := m.Merge(&w.Capture, out)
			expect.True(t, r.Gap == GapCLRRefused && r.Doubtful != 0, "%s: %+v", c.name, r)
			expect.Equal(t, inOrder(t, w, out[:r.N]), len(thrown), "%s: true frames", c.name)
		}
	})
}

// Hidden frames of a stack that the CLR did report are certain, too.
func TestHiddenAreSure(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		w := fs.BuildFor(arch, fs.Root, fs.Managed, fs.Native, fs.Hidden, fs.Hidden, fs.Native)
		m, out := merger(w), make([]Frame, 256)
		giveTables(m, truth{w: w})
		r := m.Merge(&w.Capture, out)
		check(t, w, out[:r.N])
		expect.True(t, r.Complete() && out[2].Trust == unwind.TrustUnwindInfo,
			"%+v, the second hidden frame by %v", r, out[2].Trust)
	})
}

// A return address replaced by the hijack stub's is found in the Thread. A value that the Thread keeps of an
// earlier hijack is not used.
func TestReplacedReturnAddress(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for _, c := range []struct {
			name     string
			replaced bool
		}{{"replaced", true}, {"an earlier one, of the same slot", false}} {
			w := fs.BuildFor(arch, fs.Root, fs.Native, fs.Managed, fs.Managed, fs.Native)
			refuse(w)
			caller := w.Truth[2]
			slot := w.Truth[1].Slot
			h := truth{w: w, slot: slot, ra: caller.IP}
			if c.replaced {
				stub := w.Truth[4].IP &^ 0xff // a native function's first byte
				store(w, slot, stub)
			} else {
				h.slot, h.ra = w.Truth[2].Slot, w.Truth[1].IP
			}
			m, out := merger(w), make([]Frame, 256)
			giveTables(m, h)
			r := m.Merge(&w.Capture, out)
			expect.True(t, r.Complete() && r.Doubtful == 0, "%s: %+v", c.name, r)
			check(t, w, out[:r.N])
		}
	})
}

func TestNoAllocationsWithTables(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		w := fs.BuildFor(arch, thrown...)
		refuse(w)
		m, out := merger(w), make([]Frame, 256)
		giveTables(m, truth{w: w})
		expect.Equal(t, testing.AllocsPerRun(100, func() { m.Merge(&w.Capture, out) }), 0, "allocations")
	})
}

// Code heaps grow: managed code that is newer than the module table is recognized as managed.
func TestFreshCode(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for _, refused := range []bool{false, true} {
			w := fs.BuildFor(arch, fs.Root, fs.Managed, fs.Native, fs.Managed, fs.Managed, fs.Native)
			if refused {
				refuse(w)
			}
			m, out := merger(w), make([]Frame, 256)
			m.SetTable(module.NewTable(9, []module.Module{*w.Table.At(0)}, nil))
			giveTables(m, truth{w: w})
			r := m.Merge(&w.Capture, out)
			expect.True(t, r.Complete() && r.Verdict == seed.Found, "refused %v: %+v", refused, r)
			if slices.ContainsFunc(out[:r.N], func(f Frame) bool { return f.Trust.Doubtful() }) {
				t.Errorf("refused %v: a frame in code that the CLR knows is doubtful", refused)
			}
			check(t, w, out[:r.N])
		}
	})
}

// Code of a module is native, whatever the CLR says of its address.
func TestModuleIsNotFresh(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		w := fs.BuildFor(arch, fs.Root, fs.Managed, fs.Native)
		refuse(w)
		m, out := merger(w), make([]Frame, 64)
		native, ip := *w.Table.At(0), w.Truth[1].IP
		m.SetTable(module.NewTable(9, []module.Module{native, {Start: ip - 64, End: ip + 64}}, nil))
		giveTables(m, truth{w: w})
		r := m.Merge(&w.Capture, out)
		expect.True(t, r.Gap == GapNoInfo, "%+v", r)
	})
}

// No step leaves the thread's stack, neither by the tables nor by a guess.
func TestStepsStayOnTheStack(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for _, given := range []bool{false, true} {
			w := fs.BuildFor(arch, fs.Root, fs.Managed, fs.Managed, fs.Native)
			refuse(w)
			m, out := merger(w), make([]Frame, 64)
			if given {
				giveTables(m, truth{w: w})
			}
			m.Merge(&w.Capture, out) // bounds of an earlier stack are not used
			w.Capture.Thread.StackHigh = w.Truth[1].SP + 8
			if r := m.Merge(&w.Capture, out); r.Managed+r.Hidden != 1 || r.Complete() {
				t.Errorf("tables %v: %+v: %+v", given, r, out[:r.N])
			}
		}
	})
}

// The gap of a thread without registers has no stack pointer, whatever stack was merged before.
func TestGapWithoutRegisters(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		w := fs.BuildFor(arch, fs.Root, fs.Managed, fs.Native)
		m, out := merger(w), make([]Frame, 64)
		m.Merge(&w.Capture, out)
		w.Capture.Status = clr.CaptureNoAnswer
		m.Merge(&w.Capture, out)
		expect.True(t, out[0].Kind == unwind.KindGap && out[0].SP == 0, "%+v", out[0])
	})
}
