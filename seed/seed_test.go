package seed

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	fs "github.com/seedwalk/seedwalk/internal/fakestack"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/amd64"
)

func TestFind(t *testing.T) {
	native := []fs.Kind{fs.Root, fs.Managed, fs.Native, fs.Native}
	for _, c := range []struct {
		name   string
		kinds  []fs.Kind
		change func(w *fs.World, b *unwind.Bounds)
		want   Verdict
		seed   int // index of the true seed frame, leaf first; -1: none
	}{
		{"managed on top", []fs.Kind{fs.Root, fs.Managed}, nil, NotNeeded, 0},
		{"two native frames", native, nil, Found, 2},
		{"native to the end", []fs.Kind{fs.Root, fs.Native}, nil, NoManaged, -1},
		{"no unwind data", []fs.Kind{fs.Root, fs.Managed, fs.NoCFI, fs.Native}, nil, Truncated, -1},
		{"over a guess", []fs.Kind{fs.Root, fs.Managed, fs.NoCFI, fs.Native}, func(_ *fs.World, b *unwind.Bounds) { b.Guess = true }, Unsafe, -1},
		{"stack pointer outside the stack", native, func(_ *fs.World, b *unwind.Bounds) { b.High = b.Low + 8 }, Unsafe, -1},
		{"ip not canonical", native, func(w *fs.World, _ *unwind.Bounds) { w.Capture.Regs.RIP |= 1 << 60 }, Truncated, -1},
		{"nothing copied", native, func(w *fs.World, _ *unwind.Bounds) { w.Capture.Stack.Data = nil }, Truncated, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := fs.Build(c.kinds...)
			b := unwind.Bounds{Low: fs.StackLow, High: fs.StackHigh}
			if c.change != nil {
				c.change(w, &b)
			}
			r := find(w, &b)
			if r.Verdict != c.want {
				t.Fatalf("verdict %v (stop %v), want %v", r.Verdict, r.Stop, c.want)
			}
			if r.Verdict.Usable() != (c.seed >= 0) {
				t.Errorf("usable = %v", r.Verdict.Usable())
			}
			if c.seed >= 0 {
				checkSeed(t, &r, &w.Truth[c.seed])
			}
		})
	}
}

func find(w *fs.World, b *unwind.Bounds) Result {
	u := amd64.New()
	u.SetTable(w.Table)
	mem := memory.New(w.Capture.Stack)
	return Find(u, &w.Capture.Regs, mem, b, make([]unwind.Frame, 64))
}

func checkSeed(t *testing.T, r *Result, f *fs.Frame) {
	t.Helper()
	if r.Regs.RIP != f.IP || r.Regs.SP() != f.SP || r.Regs.FP() != f.FP || r.Exact != f.Exact {
		t.Errorf("seed ip %#x sp %#x fp %#x, want %+v", r.Regs.RIP, r.Regs.SP(), r.Regs.FP(), f)
	}
	if r.Regs.Known>>context.RBX&1 == 0 {
		t.Error("rbx is not known: the CLR would trust a register nobody restored")
	}
}

func TestFindDoesNotAllocate(t *testing.T) {
	w := fs.Build(fs.Root, fs.Managed, fs.Native, fs.Native)
	u := amd64.New()
	u.SetTable(w.Table)
	mem, out := memory.New(w.Capture.Stack), make([]unwind.Frame, 64)
	b := unwind.Bounds{Low: fs.StackLow, High: fs.StackHigh}
	if n := testing.AllocsPerRun(100, func() { Find(u, &w.Capture.Regs, mem, &b, out) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFind(b *testing.B) {
	w := fs.Build(fs.Root, fs.Managed, fs.Native, fs.Native, fs.Native, fs.Native)
	u := amd64.New()
	u.SetTable(w.Table)
	mem, out := memory.New(w.Capture.Stack), make([]unwind.Frame, 64)
	bounds := unwind.Bounds{Low: fs.StackLow, High: fs.StackHigh}
	b.ReportAllocs()
	for b.Loop() {
		Find(u, &w.Capture.Regs, mem, &bounds, out)
	}
}
