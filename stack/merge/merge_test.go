package merge

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/expect"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/walker"
)

func merger(w *fs.World) *Merger {
	m := New(walker.New(w.Arch), w)
	m.SetTable(w.Table)
	return m
}

func onBoth(t *testing.T, test func(t *testing.T, arch context.Arch)) {
	for _, a := range context.Arches {
		t.Run(a.String(), func(t *testing.T) { test(t, a) })
	}
}

func run(w *fs.World) (Result, []Frame) {
	out := make([]Frame, 256)
	r := merger(w).Merge(&w.Capture, out)
	return r, out[:r.N]
}

// store writes a word of the stack.
func store(w *fs.World, addr, v uint64) {
	binary.LittleEndian.PutUint64(w.Capture.Stack.Data[addr-w.Capture.Stack.Addr:], v)
}

// check compares a merged stack with the true one, frame by frame.
func check(t *testing.T, w *fs.World, got []Frame) {
	t.Helper()
	must.Equal(t, len(got), len(w.Truth), "frames: %+v", got)
	for i := range got {
		g, f := &got[i], &w.Truth[i]
		if g.IP != f.IP || !rightSP(w, g, f) || g.Kind != f.UnwindKind() || g.Function != f.Function ||
			g.Exact != f.Exact {
			t.Errorf("frame %d = %+v, want %+v", i, *g, *f)
		}
	}
}

// rightSP compares stack pointers. After a guess on ARM64 only a lower limit of SP is known.
func rightSP(w *fs.World, g *Frame, f *fs.Frame) bool {
	return g.SP == f.SP || w.Arch == context.ArchARM64 && g.Trust.Doubtful() && g.SP < f.SP
}

var shapes = []struct {
	name    string
	kinds   []fs.Kind // root first
	verdict seed.Verdict
	hidden  int
}{
	{"only native", []fs.Kind{fs.Root, fs.Native, fs.Native}, seed.NoManaged, 0},
	{"managed on top", []fs.Kind{fs.Root, fs.Native, fs.Managed, fs.Managed}, seed.NotNeeded, 0},
	{"native on top", []fs.Kind{fs.Root, fs.Native, fs.Managed, fs.Managed, fs.Native, fs.Native},
		seed.Found, 0},
	{"block in the middle", []fs.Kind{fs.Root, fs.Managed, fs.Native, fs.Native, fs.Managed,
		fs.Managed, fs.Native}, seed.Found, 0},
	{"three blocks", []fs.Kind{fs.Root, fs.Managed, fs.Native, fs.Managed, fs.Native, fs.Managed, fs.Native,
		fs.Managed}, seed.NotNeeded, 0},
	{"IL stub between", []fs.Kind{fs.Root, fs.Managed, fs.ILStub, fs.Native, fs.Managed,
		fs.ILStub, fs.Native}, seed.Found, 2},
	{"hidden exception handling",
		[]fs.Kind{fs.Root, fs.Managed, fs.Framed, fs.Hidden, fs.Hidden, fs.Native}, seed.Found, 2},
	{"IL stub on top", []fs.Kind{fs.Root, fs.Managed, fs.ILStub}, seed.NotNeeded, 1},
	{"frameless stub on top",
		[]fs.Kind{fs.Root, fs.Native, fs.Managed, fs.Managed, fs.Frameless}, seed.NotNeeded, 1},
	{"hidden below a stub", []fs.Kind{fs.Root, fs.Managed, fs.Hidden, fs.ILStub, fs.Framed, fs.Managed},
		seed.NotNeeded, 2},
	{"stubs on stubs", []fs.Kind{fs.Root, fs.Managed, fs.ILStub, fs.ILStub, fs.ILStub, fs.Framed, fs.Framed},
		seed.Found, 3},
	{"framed and not", []fs.Kind{fs.Root, fs.Native, fs.Framed, fs.Native, fs.Managed, fs.Framed,
		fs.Native, fs.Framed}, seed.Found, 0},
}

func TestCompleteStacks(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for _, c := range shapes {
			t.Run(c.name, func(t *testing.T) {
				w := fs.BuildFor(arch, c.kinds...)
				r, got := run(w)
				expect.True(t, r.Complete() && r.Verdict == c.verdict && r.Hidden == c.hidden &&
					r.Doubtful == 0, "result %+v, want verdict %v and %d hidden", r, c.verdict, c.hidden)
				check(t, w, got)
			})
		}
	})
}

// An inlined P/Invoke's frame is reported with another IP and, with stackalloc, another SP (on x86-64 one
// inside the frame). The physical return address is kept.
func TestInlinedPInvoke(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		w := fs.BuildFor(arch, fs.Root, fs.Managed, fs.Native)
		w.Capture.Frames[0].IP -= 5
		w.Capture.Frames[0].SP += map[context.Arch]uint64{context.ArchAMD64: 8,
			context.ArchARM64: 0x100}[arch]
		r, got := run(w)
		expect.True(t, r.Complete(), "gap %v", r.Gap)
		check(t, w, got)
	})
}

func TestGaps(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		mixed := []fs.Kind{fs.Root, fs.Managed, fs.Framed, fs.Managed, fs.Native, fs.Native}
		for _, c := range []struct {
			name   string
			kinds  []fs.Kind
			break_ func(w *fs.World)
			want   Gap
			frames int // true frames still found
		}{
			{"thread did not answer", mixed,
				func(w *fs.World) { w.Capture.Status = clr.CaptureNoAnswer }, GapNoAnswer, 4},
			{"registers of another architecture", mixed, func(w *fs.World) {
				w.Capture.Regs.Arch = context.ArchAMD64 + context.ArchARM64 - arch
			}, GapUnsupported, 4},
			{"foreign stack", mixed,
				func(w *fs.World) { w.Capture.Status = clr.CaptureForeign }, GapForeignStack, 4},
			{"stack cut", []fs.Kind{fs.Native, fs.Managed, fs.Native}, func(w *fs.World) {
				s := &w.Capture.Stack
				s.Data, w.Capture.Truncated = s.Data[:w.Truth[2].SP-s.Addr], true
			}, GapTruncated, 3},
			{"stack unreadable", mixed,
				func(w *fs.World) { w.Capture.Stack.Data = w.Capture.Stack.Data[:8] }, GapUnreadable, 5},
			{"no unwind data", []fs.Kind{fs.Root, fs.Managed, fs.Native, fs.NoCFI, fs.Native},
				func(*fs.World) {}, GapNoInfo, 4},
			{"CLR refused", mixed, func(w *fs.World) {
				w.Capture.Result, w.Capture.Frames = clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, nil
			}, GapCLRRefused, 6},
			{"CLR cut", mixed, func(w *fs.World) { w.Capture.Frames = w.Capture.Frames[:3]; w.Capture.Full = true }, GapCLRCut, 5},
			{"walk ends before a reported frame",
				[]fs.Kind{fs.Root, fs.Managed, fs.Root, fs.Managed, fs.Native},
				func(*fs.World) {}, GapLostManaged, 5},
		} {
			t.Run(c.name, func(t *testing.T) {
				w := fs.BuildFor(arch, c.kinds...)
				c.break_(w)
				r, got := run(w)
				expect.Equal(t, r.Gap, c.want, "gap")
				expect.Equal(t, inOrder(t, w, got), c.frames, "true frames found: %+v", got)
			})
		}
	})
}

// inOrder counts the true frames in got. They must have the order of the truth, and every other frame must be
// a gap.
func inOrder(t *testing.T, w *fs.World, got []Frame) int {
	t.Helper()
	n, at := 0, 0
	for i := range got {
		if got[i].Kind == unwind.KindGap {
			expect.True(t, got[i].Gap != GapNone, "a gap without a reason: %+v", got[i])
			continue
		}
		for at < len(w.Truth) && w.Truth[at].IP != got[i].IP {
			at++
		}
		if at == len(w.Truth) {
			t.Errorf("frame %+v is not on the stack", got[i])
			return n
		}
		n++
	}
	return n
}

func TestFullOutput(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		w := fs.BuildFor(arch, shapes[3].kinds...)
		for room := 1; room < len(w.Truth); room++ {
			out := make([]Frame, room)
			r := merger(w).Merge(&w.Capture, out)
			expect.True(t, r.N <= room && r.Gap == GapLimit, "room %d: %d frames, gap %v", room, r.N, r.Gap)
		}
	})
}

func TestNoAllocations(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for _, c := range shapes {
			w := fs.BuildFor(arch, c.kinds...)
			m, out := merger(w), make([]Frame, 256)
			expect.Equal(t, testing.AllocsPerRun(100, func() { m.Merge(&w.Capture, out) }), 0,
				"%s: allocations", c.name)
		}
	})
}

func BenchmarkMerge(b *testing.B)      { benchmark(b, context.ArchAMD64) }
func BenchmarkMergeARM64(b *testing.B) { benchmark(b, context.ArchARM64) }

func benchmark(b *testing.B, arch context.Arch) {
	for _, c := range shapes {
		b.Run(c.name, func(b *testing.B) {
			w := fs.BuildFor(arch, c.kinds...)
			m, out := merger(w), make([]Frame, 256)
			b.ReportAllocs()
			for b.Loop() {
				m.Merge(&w.Capture, out)
			}
		})
	}
}
