package merge

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	fs "github.com/seedwalk/seedwalk/internal/fakestack"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

// tables steps managed frames by the truth of a world, as the runtime's tables
// would. It refuses the methods in unknown.
type tables struct {
	w       *fs.World
	unknown map[clr.FunctionID]bool
	lie     uint64 // taken from every stack pointer
	slot    uint64 // what the Thread says was hijacked, and what stood there
	ra      uint64
}

func (t *tables) StepManaged(regs *context.AMD64, exact bool, mem *memory.Window, f *unwind.Frame) (unwind.Trust, unwind.Stop) {
	for i := range len(t.w.Truth) - 1 {
		here, next := &t.w.Truth[i], &t.w.Truth[i+1]
		if here.SP != regs.SP() || here.IP != regs.RIP || t.unknown[here.Function] {
			continue
		}
		ra, _ := mem.Word(next.SP - 8)
		regs.RIP, regs.GPR[context.RSP], regs.GPR[context.RBP] = ra, next.SP-t.lie, next.FP
		return unwind.TrustUnwindInfo, unwind.StopNone
	}
	return unwind.TrustNone, unwind.NoInfo
}

func (t *tables) Hijacked(thread, slot uint64) (uint64, bool) {
	return t.ra, thread == 0x77 && slot == t.slot
}

// refuse makes the CLR report nothing.
func refuse(w *fs.World) {
	w.Capture.Result, w.Capture.Frames = clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, nil
}

var thrown = []fs.Kind{fs.Root, fs.Native, fs.Managed, fs.Managed, fs.Native, fs.Hidden, fs.ILStub, fs.Hidden, fs.Native}

func TestRefusedYetComplete(t *testing.T) {
	w := fs.Build(thrown...)
	refuse(w)
	m, out := merger(w), make([]Frame, 256)
	m.SetManaged(&tables{w: w})
	r := m.Merge(&w.Capture, out)
	if !r.Complete() || r.Doubtful != 0 || r.Hidden != 5 || r.Managed != 0 {
		t.Errorf("%+v", r)
	}
	check(t, w, out[:r.N])
	for i := range out[:r.N] {
		if out[i].Trust.Doubtful() {
			t.Errorf("frame %d is doubtful: %+v", i, out[i])
		}
	}
	m.SetManaged(nil)
	if r := m.Merge(&w.Capture, out); r.Gap != GapCLRRefused || r.Doubtful == 0 {
		t.Errorf("without tables: %+v", r)
	}
}

func TestRefusedAndNotKnown(t *testing.T) {
	for _, c := range []struct {
		name string
		t    tables
	}{
		{"one method is not in the tables", tables{unknown: map[clr.FunctionID]bool{0x1003: true}}},
		{"the tables lead down the stack", tables{lie: 0x1000}},
	} {
		w := fs.Build(thrown...)
		refuse(w)
		c.t.w = w
		m, out := merger(w), make([]Frame, 256)
		m.SetManaged(&c.t)
		r := m.Merge(&w.Capture, out)
		if r.Gap != GapCLRRefused || r.Doubtful == 0 {
			t.Errorf("%s: %+v", c.name, r)
		}
		if n := inOrder(t, w, out[:r.N]); n != len(thrown) {
			t.Errorf("%s: %d true frames, want %d", c.name, n, len(thrown))
		}
	}
}

// Hidden frames of a stack the CLR did report are sure, too.
func TestHiddenAreSure(t *testing.T) {
	w := fs.Build(fs.Root, fs.Managed, fs.Native, fs.Hidden, fs.Hidden, fs.Native)
	m, out := merger(w), make([]Frame, 256)
	m.SetManaged(&tables{w: w})
	r := m.Merge(&w.Capture, out)
	check(t, w, out[:r.N])
	if !r.Complete() || out[2].Trust != unwind.TrustUnwindInfo {
		t.Errorf("%+v, the second hidden frame by %v", r, out[2].Trust)
	}
}

// A return address replaced by the hijack stub's is the Thread's to know; what
// the Thread remembers of an earlier hijack is not.
func TestReplacedReturnAddress(t *testing.T) {
	for _, c := range []struct {
		name     string
		replaced bool
	}{{"replaced", true}, {"an earlier one, of the same slot", false}} {
		w := fs.Build(fs.Root, fs.Native, fs.Managed, fs.Managed, fs.Native)
		refuse(w)
		caller := w.Truth[2]
		slot := caller.SP - 8
		h := &tables{w: w, slot: slot, ra: caller.IP}
		if c.replaced {
			stub := w.Truth[4].IP &^ 0xff // a native function's first byte
			binary.LittleEndian.PutUint64(w.Capture.Stack.Data[slot-w.Capture.Stack.Addr:], stub)
		} else {
			h.slot, h.ra = w.Truth[3].SP-8, w.Truth[1].IP
		}
		m, out := merger(w), make([]Frame, 256)
		m.SetManaged(h)
		r := m.Merge(&w.Capture, out)
		if !r.Complete() || r.Doubtful != 0 {
			t.Errorf("%s: %+v", c.name, r)
		}
		check(t, w, out[:r.N])
	}
}

func TestNoAllocationsWithTables(t *testing.T) {
	w := fs.Build(thrown...)
	refuse(w)
	m, out := merger(w), make([]Frame, 256)
	m.SetManaged(&tables{w: w})
	if n := testing.AllocsPerRun(100, func() { m.Merge(&w.Capture, out) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Code heaps grow: managed code that the module table does not know yet is
// managed all the same.
func TestFreshCode(t *testing.T) {
	for _, refused := range []bool{false, true} {
		w := fs.Build(fs.Root, fs.Managed, fs.Native, fs.Managed, fs.Managed, fs.Native)
		if refused {
			refuse(w)
		}
		m, out := merger(w), make([]Frame, 256)
		m.u.SetTable(module.NewTable(9, []module.Module{*w.Table.At(0)}, nil))
		m.SetManaged(&tables{w: w})
		r := m.Merge(&w.Capture, out)
		if !r.Complete() || r.Verdict != seed.Found {
			t.Errorf("refused %v: %+v", refused, r)
		}
		check(t, w, out[:r.N])
	}
}
