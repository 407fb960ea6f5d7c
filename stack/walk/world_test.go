package walk

import (
	"encoding/binary"
	"flag"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/worlds"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

var copiedWorlds = flag.Uint64("worlds", 300, "how many worlds TestCopiedWorlds runs")

// worldCode is the simulated runtime's code. A copy of a Thread is its number there.
type worldCode struct {
	merge.Managed
	host *sim.Host
}

func (c worldCode) TrueReturn(object []byte, slot uint64) (ra uint64, ok bool) {
	return c.Hijacked(binary.LittleEndian.Uint64(object), slot)
}

func (worldCode) Walk(*unwind.State, *memory.Window, *unwind.Bounds, []unwind.Frame) (int, []clr.FunctionID) {
	return 0, nil
}

func (c worldCode) ReturnSlot() uint64 { return 0 }

func (c worldCode) Function(at unwind.Address) (id clr.FunctionID, ok bool) {
	var f unwind.Frame
	regs := context.FromAMD64(context.AMD64{RIP: at.IP})
	s := unwind.State{Regs: &regs, Exact: at.Exact}
	if c.Step(&s, memory.New(), nil, &f) == unwind.NoInfo {
		return 0, false
	}
	id, _ = c.host.FunctionFromIP(at.Lookup())
	return id, true
}

// copied holds the results of the walks of a world.
type copied struct {
	samples, whole, blind int
	frames                int
	returns               uint64 // replaced return addresses that were met
	gaps                  map[merge.Gap]int
}

// Threads of random worlds copy their own stacks at random moments. The walks of the outside engine are
// correct: each complete stack equals the true one, frame by frame, and each other has only true frames. The
// same holds if only sp and ip of a thread are known.
func TestCopiedWorlds(t *testing.T) {
	all := copied{gaps: map[merge.Gap]int{}}
	for run := uint64(1); run <= *copiedWorlds; run++ {
		w := New(context.ArchAMD64)
		r := worlds.Run(run, worlds.Options{
			Setup:   func(s *sim.Setup) { s.Arch = image.AMD64 },
			Prepare: func(world *sim.World) { all.watch(w, world, run%3 == 0) },
		})
		must.Do(t, r.Err())
		all.returns += w.Returns
	}
	expect.Figures(t, all.samples >= 1000 && all.whole*100 >= all.samples*80 &&
		all.blind*100 >= all.samples*10 && all.returns != 0,
		"%d samples of %d worlds, %d frames: %d whole (%.1f %%), gaps %v; by sp and ip alone %d whole; %d replaced returns",
		all.samples, *copiedWorlds, all.frames, all.whole, 100*float64(all.whole)/float64(all.samples),
		all.gaps, all.blind, all.returns)
}

// watch walks the samples of a world. older means that the module table has no generated code yet.
func (a *copied) watch(w *Walker, world *sim.World, older bool) {
	table := world.Kit.Table
	special := new(managed.Entrances).Of(table)
	if older {
		var modules []module.Module
		for i := range table.Len() {
			modules = append(modules, *table.At(i))
		}
		table = module.NewTable(1, modules, nil)
	}
	w.Unmanaged.SetTable(table)
	w.Code, w.Special, w.HijackStub = worldCode{world.Managed(), world.Host}, &special, world.CLR.HijackStub
	for i := range world.Kit.Table.Len() {
		if m := world.Kit.Table.At(i); m.PE != nil {
			if at := managed.FindHijackStubPE(m.PE, m.Bias); at != 0 {
				w.HijackStub = at
			}
		}
	}
	world.Host.Judge = func(k *clr.Capture, truth []machine.Frame) {
		if k.Status != clr.Captured || k.Broken {
			return
		}
		thread := binary.LittleEndian.AppendUint64(nil, uint64(k.Thread.ID))
		c := Capture{Regs: k.Regs, Stack: k.Stack, Low: k.Thread.StackLow,
			High: k.Thread.StackHigh, Extra: thread}
		a.samples++
		if a.judge(world, w, &c, truth) {
			a.whole++
		}
		c.Partial = true
		c.Regs = StoppedAt(k.Regs.Arch, k.Regs.SP(), k.Regs.IP())
		if a.judge(world, w, &c, truth) {
			a.blind++
		}
	}
}

// judge compares a walk with the truth, and reports whether it is complete.
func (a *copied) judge(world *sim.World, w *Walker, c *Capture, truth []machine.Frame) bool {
	frames, gap, _ := w.Walk(c)
	if !c.Partial {
		a.frames += len(frames)
		a.gaps[gap]++
	}
	if gap == merge.GapUnreadable && len(frames) == 1 && len(truth) > 0 &&
		world.CLR.Codes.Managed(truth[0].State.PC) {
		world.Host.A.Fault("the method of the leaf is known, but not shown")
	}
	if c.Partial { // fp is unknown above the frame that restores it
		for i := range frames {
			for k := range truth {
				if st := &truth[k].State; st.PC == frames[i].IP && st.R[world.Arch.SP()] == frames[i].SP {
					frames[i].FP = st.R[world.Arch.FP()]
				}
			}
		}
	}
	found := unwind.TrustCFI
	if world.Format() == image.PE {
		found = unwind.TrustUnwindInfo
	}
	for i := range frames { // the tables have the frame; it need not be in the CLR's report
		if frames[i].Trust == unwind.TrustCLR {
			frames[i].Trust = found
		}
	}
	res := counted(frames, gap)
	left, err := world.Host.Check(truth, frames, &res)
	if err != nil || left != 0 {
		world.Host.A.Fault("partial %v, %v: %d frames left out, %v", c.Partial, gap, left, err)
	}
	return gap == merge.GapNone
}

// counted returns the result of a stack without reports of the CLR.
func counted(frames []merge.Frame, gap merge.Gap) merge.Result {
	res := merge.Result{N: len(frames), Gap: gap, Verdict: seed.Truncated} // no seed was requested
	doubt := false
	for i := range frames {
		f := &frames[i]
		if f.Kind == unwind.KindGap {
			continue
		}
		if f.Kind == unwind.KindManaged || f.Kind == unwind.KindStub {
			res.Hidden++
		}
		if f.Trust == unwind.TrustCLR {
			doubt, res.Doubtful = false, 0
		}
		if doubt = doubt || f.Trust.Doubtful(); doubt {
			res.Doubtful++
		}
	}
	return res
}
