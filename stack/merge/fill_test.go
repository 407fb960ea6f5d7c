package merge

import (
	"cmp"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
	"github.com/seedwalk/seedwalk/unwind"
)

// unreported removes the truth's frames [from, to) from the CLR's report.
func unreported(w *fs.World, from, to int) {
	for _, f := range w.Truth[from:to] {
		w.Capture.Frames = slices.DeleteFunc(w.Capture.Frames,
			func(c clr.SnapshotFrame) bool { return c.SP == f.SP && c.IP == f.IP })
	}
}

// Frames between two that the CLR reports without a marker between them.
var between = []struct {
	name  string
	kinds []fs.Kind // root first
	from  int       // the truth's frames [from, to) are not reported either, leaf first
	to    int
}{
	{"a stub of a call from unmanaged code",
		[]fs.Kind{fs.Root, fs.Managed, fs.Framed, fs.Hidden, fs.Managed, fs.Native}, 0, 0},
	{"a hidden method", []fs.Kind{fs.Root, fs.Managed, fs.Managed, fs.Hidden, fs.Managed, fs.Managed}, 0, 0},
	{"several", []fs.Kind{fs.Root, fs.Managed, fs.Hidden, fs.Hidden, fs.Managed,
		fs.Hidden, fs.Managed}, 0, 0},
	{"the dispatch of an exception, unwound frames below",
		[]fs.Kind{fs.Root, fs.Managed, fs.Managed, fs.Framed, fs.Framed, fs.Hidden, fs.Framed,
			fs.Managed, fs.Native}, 2, 6},
	{"a dispatch, then the marker of the rest",
		[]fs.Kind{fs.Root, fs.Managed, fs.Framed, fs.Hidden, fs.Framed, fs.Managed, fs.Native}, 2, 5},
	{"unmanaged frames alone", []fs.Kind{fs.Root, fs.Managed, fs.Framed, fs.Framed, fs.Managed}, 1, 3},
}

func TestFill(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for _, c := range between {
			w := fs.BuildFor(arch, c.kinds...)
			unreported(w, c.from, c.to)
			m, out := merger(w), make([]Frame, 64)
			giveTables(m, truth{w: w})
			r := m.Merge(&w.Capture, out)
			if !r.Complete() || r.Doubtful != 0 {
				t.Errorf("%s: %+v", c.name, r)
				continue
			}
			check(t, w, out[:r.N])
		}
	})
}

// firstStep is tables that know nothing. It keeps the stack pointer of the first step.
type firstStep struct{ sp uint64 }

func (f *firstStep) Step(s *unwind.State, _ *memory.Window, _ *unwind.Bounds, _ *unwind.Frame) unwind.Stop {
	f.sp = cmp.Or(f.sp, s.Regs.SP())
	return unwind.NoInfo
}

func (f *firstStep) Hijacked(uint64, uint64) (ra uint64, ok bool) { return 0, false }

// The first step begins at the walk's registers if the walk is at the frame, else at the CLR's.
func TestFillFromHere(t *testing.T) {
	for here, want := range map[bool]uint64{true: 0x1000, false: 0x1800} {
		m, tables := standing(0x1000, 0), &firstStep{}
		m.SetManaged(tables)
		m.in.Frames = []clr.SnapshotFrame{{Function: 1, IP: 0x5000, SP: 0x1800},
			{Function: 2, IP: 0x6000, SP: 0x2000}}
		m.out = make([]Frame, 8)
		m.report(0, here)
		expect.Equal(t, tables.sp, want, "the walk is at the frame: %v", here)
	}
}

// If the tables' steps do not arrive at the next reported frame, nothing is written between them, and the
// CLR's frames remain.
func TestFillFails(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for _, c := range between {
			for _, fault := range []struct {
				name       string
				giveTables func(m *Merger, w *fs.World)
			}{
				{"no tables", func(*Merger, *fs.World) {}},
				{"an unknown method", func(m *Merger, w *fs.World) {
					unknown := map[clr.FunctionID]bool{}
					for i := range w.Truth {
						if w.Truth[i].Kind == fs.Hidden {
							unknown[w.Truth[i].Function] = true
						}
					}
					giveTables(m, truth{w: w, unknown: unknown})
				}},
				{"tables that lie", func(m *Merger, w *fs.World) {
					giveTables(m,
						truth{w: w, lie: 1 << 12})
				}},
			} {
				w := fs.BuildFor(arch, c.kinds...)
				unreported(w, c.from, c.to)
				m, out := merger(w), make([]Frame, 64)
				fault.giveTables(m, w)
				r := m.Merge(&w.Capture, out)
				for i := range out[:r.N] {
					g := &out[i]
					if g.Kind == unwind.KindGap ||
						slices.ContainsFunc(w.Truth,
							func(f fs.Frame) bool { return f.IP == g.IP && f.SP == g.SP }) {
						continue
					}
					t.Errorf("%s, %s: frame %d is not on the stack: %+v", c.name, fault.name, i, *g)
				}
				managed := 0
				for i := range w.Capture.Frames {
					if !w.Capture.Frames[i].Marker() {
						managed++
					}
				}
				expect.True(t, r.Managed == managed,
					"%s, %s: %d frames of the CLR's, want %d", c.name, fault.name, r.Managed, managed)
			}
		}
	})
}

// Frames found by a guess are not put between frames that the CLR reports in sequence.
func TestFillDoubts(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for _, c := range between {
			var written [2][]Frame
			for i, given := range []bool{false, true} {
				w := fs.BuildFor(arch, c.kinds...)
				unreported(w, c.from, c.to)
				m, out := merger(w), make([]Frame, 64)
				if given {
					giveTables(m, truth{w: w, guess: true})
				}
				r := m.Merge(&w.Capture, out)
				written[i] = out[:r.N]
			}
			expect.Slices(t, written[0], written[1], "%s: without tables", c.name)
		}
	})
}

// A stack that does not fit ends in a gap, wherever the room ends.
func TestFillWithoutRoom(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		for _, c := range between {
			w := fs.BuildFor(arch, c.kinds...)
			unreported(w, c.from, c.to)
			for room := 1; room < len(w.Truth); room++ {
				m, out := merger(w), make([]Frame, room)
				giveTables(m, truth{w: w})
				r := m.Merge(&w.Capture, out)
				expect.True(t, r.N <= room, "%s: room %d, %d frames", c.name, room, r.N)
			}
			m, out := merger(w), make([]Frame, 64)
			giveTables(m, truth{w: w})
			expect.Equal(t, testing.AllocsPerRun(20, func() { m.Merge(&w.Capture, out) }), 0,
				"%s: allocations", c.name)
		}
	})
}

// Two frames found to be adjacent once are recognized by the same distance, without a step; another distance
// needs a step again.
func TestFillRemembers(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		w := fs.BuildFor(arch, fs.Root, fs.Managed, fs.Managed, fs.Managed, fs.Native)
		m, out := merger(w), make([]Frame, 64)
		count := &counting{truth: truth{w: w}}
		m.SetManaged(count)
		for i := 1; i < 4; i++ { // the same distances, of code at other addresses
			*m.sizes.of(w.Truth[i].IP) = frameSize{w.Truth[i].IP ^ 1, w.Truth[i+1].SP - w.Truth[i].SP}
		}
		for _, c := range []struct {
			name  string
			hide  bool // the frame in the middle
			steps int
		}{{"first", false, 3}, {"again", false, 0}, {"a frame less is reported", true, 2},
			{"the same again: something stands there", true, 2}} {
			frames := w.Capture.Frames
			w.Capture.Frames = slices.Clone(frames)
			if c.hide {
				unreported(w, 2, 3)
			}
			count.steps = 0
			r := m.Merge(&w.Capture, out)
			check(t, w, out[:r.N])
			expect.Equal(t, count.steps, c.steps, "%s: steps", c.name)
			w.Capture.Frames = frames
		}
	})
}

// A function calls itself through a hidden method, and the CLR reports its outer frame only. The inner one
// has the same ip as the marker, but another SP.
func TestFillRecursion(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		w := fs.BuildFor(arch, fs.Root, fs.Managed, fs.Framed, fs.Hidden, fs.Framed, fs.Managed, fs.Native)
		inner, outer := &w.Truth[2], &w.Truth[4]
		inner.IP = outer.IP
		store(w, w.Truth[1].Slot, inner.IP)
		w.Capture.Frames[1] = clr.SnapshotFrame{IP: outer.IP, SP: outer.SP, FP: outer.FP}
		m, out := merger(w), make([]Frame, 64)
		giveTables(m, truth{w: w})
		if r := m.Merge(&w.Capture, out); !r.Complete() {
			t.Errorf("%+v", r)
		} else {
			check(t, w, out[:r.N])
		}
	})
}

// A walk that arrives at a marker's SP with another ip has not arrived at the marker: what it found is not
// shown.
func TestFillToAnotherIP(t *testing.T) {
	onBoth(t, func(t *testing.T, arch context.Arch) {
		w := fs.BuildFor(arch, fs.Root, fs.Native, fs.Hidden, fs.Managed, fs.Native)
		m, out := merger(w), make([]Frame, 64)
		giveTables(m, truth{w: w})
		r := m.Merge(&w.Capture, out)
		expect.True(t, r.Hidden == 1, "%+v", r)
		w.Capture.Frames[1].IP += 4 // the marker
		r = m.Merge(&w.Capture, out)
		expect.True(t, r.Hidden == 0, "with another ip: %+v", r)
	})
}

// counting is a Managed that counts its steps.
type counting struct {
	truth
	steps int
}

func (c *counting) Step(s *unwind.State, mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) unwind.Stop {
	c.steps++
	return c.truth.Step(s, mem, b, f)
}
