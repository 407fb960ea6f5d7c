package merge

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

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
		{"another SP and FP", []clr.SnapshotFrame{at(0x1100, 0x9999), marker(0)}, method, above(0x1810), false},
		{"grown by stackalloc", []clr.SnapshotFrame{at(0x1100, fp), marker(0x4000)}, method, above(0x1810), true},
		{"grown by stackalloc, without tables", []clr.SnapshotFrame{at(0x1100, fp), marker(0x4000)}, method, nil, true},
		{"grown by stackalloc, not in the tables", []clr.SnapshotFrame{at(0x1100, fp), marker(0x4000)}, method, above(0), true},
		{"recursion without frame pointers", []clr.SnapshotFrame{at(0x1100, fp), at(0x1130, fp), marker(fp)}, method, above(0x1030), false},
		{"recursion without frame pointers and tables", []clr.SnapshotFrame{at(0x1100, fp), at(0x1130, fp), marker(fp)}, method, nil, false},
		{"a funclet below its method", []clr.SnapshotFrame{at(0x1400, fp), marker(0x4000)}, method, above(0x1030), false},
		{"the CLR's frame is further down", []clr.SnapshotFrame{at(0xff0, fp), marker(0x4000)}, method, above(0x1810), false},
		{"a frame that begins at its caller's SP", []clr.SnapshotFrame{at(0x1100, fp), marker(0x4000)}, method, above(0x1100), false},
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
			if got := m.same(0, c.fid, true); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			if m.at != at || m.regs != regs {
				t.Error("the question has moved the walk")
			}
		})
	}
}
