package sim_test

import (
	"sync"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/worlds"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/snapshot"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// recorded is what a sampler captured in a random world, with the truth. The
// worlds themselves allocate; what is recorded can be looked at again without.
type recorded struct {
	w       *sim.World
	capture clr.Capture
	truth   []machine.Frame
}

// recordings are the captures of a few worlds, made once.
var recordings = sync.OnceValue(func() (all []recorded) {
	for run := uint64(1); run <= 40; run++ {
		worlds.Run(run, worlds.Options{Prepare: func(w *sim.World) {
			w.Host.Judge = func(c *clr.Capture, truth []machine.Frame) {
				all = append(all, record(w, c, truth))
			}
		}})
	}
	return all
})

func record(w *sim.World, c *clr.Capture, truth []machine.Frame) recorded {
	r := recorded{w: w, capture: *c, truth: append([]machine.Frame(nil), truth...)}
	r.capture.Stack = memory.Run{Addr: c.Stack.Addr, Data: append([]byte(nil), c.Stack.Data...)}
	r.capture.Frames = append([]clr.SnapshotFrame(nil), c.Frames...)
	return r
}

// tools are the product's, made once for both architectures.
type tools struct {
	w     *sim.World
	u     [2]unwind.Walker // by image.Arch
	seed  [2]snapshot.Seeder
	merge [2]*merge.Merger
}

func newTools() *tools {
	t := new(tools)
	for _, a := range []image.Arch{image.AMD64, image.ARM64} {
		u := managed.NewWalker(machine.Arch(a))
		t.u[a], t.seed[a], t.merge[a] = u, snapshot.NewSeeder(u, nil), merge.New(u, t)
	}
	return t
}

// FunctionFromIP implements merge.Functions.
func (t *tools) FunctionFromIP(ip uint64) (clr.FunctionID, clr.HRESULT) {
	return t.w.Host.FunctionFromIP(ip)
}

// use takes the tables and specials of r's world.
func (t *tools) use(r *recorded) (snapshot.Seeder, *merge.Merger) {
	return t.useWith(r, r.w.Specials)
}

func (t *tools) useWith(r *recorded, s *managed.Specials) (snapshot.Seeder, *merge.Merger) {
	t.w = r.w
	m := t.merge[r.w.Arch]
	m.SetTable(r.w.Kit.Table)
	m.SetSpecials(s)
	t.seed[r.w.Arch].(interface{ SetSpecials(*managed.Specials) }).SetSpecials(s)
	return t.seed[r.w.Arch], m
}

// both calls f for a recording of each architecture that want takes.
func both(t *testing.T, want func(r *recorded) bool, f func(t *testing.T, r *recorded)) {
	t.Helper()
	all := recordings()
	for _, a := range []image.Arch{image.AMD64, image.ARM64} {
		t.Run(a.String(), func(t *testing.T) {
			n := 0
			for i := range all {
				if r := &all[i]; r.w.Arch == a && want(r) {
					f(t, r)
					n++
				}
			}
			expect.True(t, n != 0, "of %d recordings none is of the kind wanted", len(all))
		})
	}
}

func every(*recorded) bool { return true }

// replay answers a sampler with recordings, without allocating: it is both
// clr.Threads and clr.Runtime.
type replay struct {
	all  []recorded
	next int // recording that answers the next question, for threads one at a time
	now  int64
}

var (
	_ clr.Threads = (*replay)(nil)
	_ clr.Runtime = (*replay)(nil)
)

func (p *replay) Claim(clr.Thread) bool                     { return true }
func (p *replay) Release(clr.Thread)                        {}
func (p *replay) Prime(clr.Thread) (int, clr.HRESULT)       { return 1, clr.S_OK }
func (p *replay) Suspend(int, clr.Thread) clr.SuspendStatus { return clr.Suspended }
func (p *replay) Resume(int, clr.Thread)                    {}
func (p *replay) Pause(int64)                               {}
func (p *replay) Now() int64                                { p.now++; return p.now }
func (p *replay) SuspendRuntime() clr.HRESULT               { return clr.S_OK }
func (p *replay) ResumeRuntime() clr.HRESULT                { return clr.S_OK }
func (p *replay) Enter()                                    {}
func (p *replay) Leave()                                    {}
func (p *replay) Alive(clr.Thread) bool                     { return true }
func (p *replay) Ask(int, clr.Thread)                       {}
func (p *replay) Late(int, *clr.Capture)                    {}
func (p *replay) Await(i int, c *clr.Capture) {
	p.fill(&p.all[i],
		c)
	c.Status = clr.Captured
}
func (p *replay) Context(_ int, c *clr.Capture) bool {
	p.fill(&p.all[p.next],
		c)
	return true
}
func (p *replay) FunctionFromIP(uint64) (clr.FunctionID, clr.HRESULT) { return 0, clr.E_FAIL }

func (p *replay) fill(r *recorded, c *clr.Capture) {
	c.Thread = r.capture.Thread
	c.Regs, c.Stack, c.Truncated = r.capture.Regs, r.capture.Stack, r.capture.Truncated
}

// DoStackSnapshot is of both interfaces.
func (p *replay) DoStackSnapshot(i int, c *clr.Capture) {
	r := &p.all[max(i, p.next)]
	c.Result, c.Frames, c.Full = r.capture.Result, r.capture.Frames, r.capture.Full
}
