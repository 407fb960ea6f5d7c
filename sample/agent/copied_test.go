package agent

import (
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	fs "github.com/seedwalk/seedwalk/testkit/fakestack"
)

// pool holds copies of one stack in some of its slots.
type pool struct {
	world *fs.World
	full  []bool
}

func (p *pool) Len() int   { return len(p.full) }
func (p *pool) Done(i int) { p.full[i] = false }
func (p *pool) At(i int, c *clr.Capture) bool {
	if p.full[i] {
		*c = p.world.Capture
	}
	return p.full[i]
}

// Every copy becomes a stack, once, without a suspension.
func TestCopied(t *testing.T) {
	world := fs.Build(fs.Root, fs.Managed, fs.Managed, fs.Native)
	f := &fake{world: world, rounds: 99}
	g := &fakeThreads{fake: fake{world: world, rounds: 99}}
	for name, a := range map[string]*Agent{"runtime": New(f, Config{Slots: 4}, nil),
		"threads": NewThreads(g, Config{Slots: 4}, nil)} {
		t.Run(name, func(t *testing.T) {
			p := &pool{world, []bool{false, true, true, false, true}}
			got := 0
			use := func(s *Stack) {
				got++
				expect.True(t, s.Merged.Gap == merge.GapNone && len(s.Frames) == 4 && s.Name == "worker",
					"gap %v, %d frames, thread %q", s.Merged.Gap, len(s.Frames), s.Name)
			}
			a.Copied(p, use)
			a.Copied(p, use)
			expect.True(t, got == 3 && f.rounds == 99 && g.rounds == 99 && g.suspended == 0,
				"%d stacks of 3 copies, %d and %d suspensions", got, 99-f.rounds, 99-g.rounds)
		})
	}
}

// A thread's CPU time equals that of its samples, however often it is copied.
func TestCopiesCostNoTime(t *testing.T) {
	world := fs.Build(fs.Root, fs.Managed, fs.Managed, fs.Native)
	f := &fake{world: world, rounds: 99}
	a := New(f, Config{Slots: 4}, nil)
	var times []uint64
	use := func(s *Stack) { times = append(times, s.CPU) }
	a.Once(0, use)
	f.cpu = 100
	a.Once(0, use)
	for _, cpu := range []uint64{300, 500, 900} {
		f.cpu = cpu
		a.Copied(&pool{world, []bool{true}}, use)
	}
	a.Once(0, use)
	want := []uint64{0, 100, 0, 0, 0, 800}
	expect.True(t, slices.Equal(times, want), "CPU times %v, want %v", times, want)
}

// The first sample of a new thread has the thread's CPU time, but no more than the time since the last
// round. The first sample of a thread that was there in the first round has none.
func TestFirstSampleTime(t *testing.T) {
	world := fs.Build(fs.Root, fs.Managed, fs.Managed, fs.Native)
	f := &fake{world: world, rounds: 99}
	a := New(f, Config{Slots: 4}, nil)
	for _, c := range []struct {
		tid, cpu, want uint64
		now            int64
	}{{7, 5000, 0, 100}, {7, 5010, 10, 120}, {8, 3, 3, 140}, {8, 7, 4, 160}, {9, 900, 20, 180},
		{7, 15, 15, 200}} {
		world.Capture.Thread.TID, f.cpu, f.now = c.tid, c.cpu, c.now
		a.Once(0, func(s *Stack) {
			expect.True(t, s.CPU == c.want,
				"thread %d, %d ns used at %d: the sample has %d ns, want %d", c.tid, c.cpu, c.now, s.CPU,
				c.want)
		})
	}
}

// Copies wait for the verification of the runtime's tables, but not forever.
func TestCopiesWait(t *testing.T) {
	f := &fake{world: fs.Build(fs.Root, fs.Managed, fs.Native), rounds: 99}
	a := New(f, Config{Slots: 4}, nil)
	p := &pool{f.world, []bool{true}}
	a.unproven = proofs - 2
	a.take.(*rounds).managed.tables = &contract.Tables{} // with an unverified layout
	f.world.Capture.Frames = nil                         // a copy has no reported frames
	for n, want := range []bool{true, true, false} {
		a.Copied(p, func(*Stack) {})
		expect.Equal(t, p.full[0], want, "after call %d: waits", n+1)
	}
}
