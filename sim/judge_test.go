package sim_test

import (
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// state is the seed of c.
func (r *recorded) state(c *clr.Capture) machine.State {
	return machine.FromRegisters(&c.Seed)
}

// top is how many unmanaged frames are above the first managed one; -1 if there
// is none.
func (r *recorded) top() int {
	for i := range r.truth {
		if r.w.CLR.Codes.Managed(r.truth[i].State.PC) {
			return i
		}
	}
	return -1
}

// Every verdict on the contexts of a few worlds, held against the truth: certain
// where the walk is, found where there is something to find, captured registers
// untouched.
func TestVerdicts(t *testing.T) {
	tl := newTools()
	counts := map[seed.Verdict]int{}
	both(t, every, func(t *testing.T, r *recorded) {
		s, _ := tl.use(r)
		c := r.capture
		v := s.Seed(&c)
		counts[v]++
		must.Equal(t, c.Regs, r.capture.Regs, "the walk has changed what was captured")
		st := r.state(&c)
		must.Do(t, r.w.Host.CheckSeed(r.truth, v, &st))
		switch kind, _ := r.w.CLR.Codes.At(r.truth[0].State.PC); {
		case r.top() > 0 && v != seed.Found, r.top() < 0 && v != seed.NoManaged:
			t.Fatalf("%v, though the first managed frame is %d", v, r.top())
		case r.w.Specials != nil && kind == vm.Dynamic && v != seed.StubOnTop:
			t.Fatalf("%v on a stub", v)
		}
	})
	for _, v := range []seed.Verdict{seed.NotNeeded, seed.Found, seed.NoManaged, seed.StubOnTop} {
		expect.True(t, counts[v] != 0, "no %v among %v: the recordings are poor", v, counts)
	}
}

// bend is a way to make a recording's context one that no verdict may let pass.
type bend struct {
	name string
	want seed.Verdict
	bend func(r *recorded, c *clr.Capture) bool
}

func move(c *clr.Capture, ip, sp uint64) {
	c.Regs.SetIP(c.Regs.IP() + ip)
	c.Regs.SetSP(c.Regs.SP() + sp)
}

func sp(r *recorded) uint64 { return r.truth[0].State.R[r.w.Arch.SP()] }

const unusable = seed.Verdict(200) // whichever, but it may not be used

var bends = []bend{
	{"sp below the stack", seed.ForeignStack, func(r *recorded, c *clr.Capture) bool {
		move(c, 0, c.Thread.StackLow-16-sp(r))
		return true
	}},
	{"sp at the stack's end", seed.ForeignStack, func(r *recorded, c *clr.Capture) bool {
		move(c, 0, c.Thread.StackHigh-sp(r))
		return true
	}},
	{"sp on another stack", seed.ForeignStack, func(r *recorded, c *clr.Capture) bool {
		move(c, 0, c.Thread.StackHigh+0x100000-sp(r))
		return true
	}},
	{"sp zero", seed.ForeignStack,
		func(r *recorded, c *clr.Capture) bool { move(c, 0, -sp(r)); return true }},
	{"sp off by one", unusable,
		func(r *recorded, c *clr.Capture) bool { move(c, 0, 1); return r.top() >= 0 }},
	{"sp off by four", unusable,
		func(r *recorded, c *clr.Capture) bool { move(c, 0, 4); return r.top() >= 0 }},
	{"sp off by half of what ARM64 demands", unusable, func(r *recorded, c *clr.Capture) bool {
		move(c, 0, 8)
		return r.top() >= 0 && r.w.Arch == image.ARM64
	}},
	{"ip amid an instruction of ARM64", unusable, func(r *recorded, c *clr.Capture) bool {
		move(c, 2, 0)
		return r.top() >= 0 && r.w.Arch == image.ARM64
	}},
	{"ip non-canonical", unusable,
		func(r *recorded, c *clr.Capture) bool { move(c, 1<<52, 0); return r.top() >= 0 }},
	{"ip in a redirect stub", seed.StubOnTop, func(r *recorded, c *clr.Capture) bool { return r.top() > 0 }},
	{"ip in a dispatcher", seed.StubOnTop, func(r *recorded, c *clr.Capture) bool { return r.top() > 0 }},
	{"a dispatcher left as if it had been called", seed.Unsafe, func(r *recorded, c *clr.Capture) bool {
		return r.top() > 1 && !r.truth[1].Exact && r.truth[0].Func != r.truth[1].Func
	}},
	{"the stack's copy is cut", seed.Truncated, func(r *recorded, c *clr.Capture) bool {
		if r.top() < 2 {
			return false
		}
		c.Stack.Data = c.Stack.Data[:8]
		return r.truth[r.top()].State.R[r.w.Arch.SP()] > c.Stack.Addr+512
	}},
}

// around is the function of frame i as a range that the walk must know.
func around(r *recorded, i int) (out managed.Places) {
	f := &r.truth[i]
	lo := f.Image.Base + uint64(f.Func.RVA)
	out.Add(memory.Range{Start: lo, End: lo + uint64(f.Func.Size)})
	return out
}

// No verdict accepts a state from which no walk is possible.
func TestHostileContexts(t *testing.T) {
	tl := newTools()
	for _, b := range bends {
		t.Run(b.name, func(t *testing.T) {
			n := 0
			for i := range recordings() {
				r := &recordings()[i]
				c := r.capture
				if !b.bend(r, &c) {
					continue
				}
				n++
				var special managed.Specials
				switch b.name {
				case "ip in a redirect stub":
					special.Redirect = around(r, 0)
				case "ip in a dispatcher":
					special.Dispatch = around(r, 0)
				case "a dispatcher left as if it had been called":
					special.Dispatch = around(r, 1)
				}
				s, _ := tl.useWith(r, &special)
				v := s.Seed(&c)
				if v.Usable() || b.want != unusable && v != b.want {
					t.Fatalf("%v, %v: %v, not %v", r.w.Variant, r.w.Arch, v, b.want)
				}
			}
			expect.True(t, n >= 3, "%d recordings of the kind only", n)
		})
	}
}

// A register whose value is not known, and which no frame above has saved, makes
// no seed; one that a frame has saved is known again.
func TestUnknownRegisters(t *testing.T) {
	tl := newTools()
	both(t, func(r *recorded) bool { return r.top() > 0 }, func(t *testing.T, r *recorded) {
		s, _ := tl.use(r)
		for _, reg := range [2][]int{image.AMD64: {3, 5, 12, 13, 14, 15},
			image.ARM64: {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29}}[r.w.Arch] {
			c := r.capture
			if r.w.Arch == image.ARM64 {
				c.Regs.ARM64.X[reg] = 0xbad
			} else {
				c.Regs.AMD64.GPR[reg] = 0xbad
			}
			c.Regs.SetKnown(c.Regs.Known() &^ (1 << reg))
			v := s.Seed(&c)
			unknown[r.w.Arch][v]++
			st := r.state(&c)
			must.Equal(t, r.w.Host.CheckSeed(r.truth, v, &st), nil, "register %d", reg)
		}
	})
	for a := range unknown {
		u := &unknown[a]
		expect.True(t, u[seed.Found] != 0 && u[seed.Unsafe] != 0, "verdicts without a register: %v", u)
	}
}

var unknown [2][seed.VerdictCount]int

// Every recording merged: true, with the verdict of the seed, complete where
// nothing stands in the way, and nothing doubtful passed for certain.
func TestMerges(t *testing.T) {
	tl := newTools()
	out := make([]merge.Frame, 512)
	both(t, every, func(t *testing.T, r *recorded) {
		s, m := tl.use(r)
		c := r.capture
		v := s.Seed(&c)
		res := m.Merge(&r.capture, out)
		must.True(t, res.Verdict == v, "the merge's verdict is %v, the seed's %v", res.Verdict, v)
		must.Get(r.w.Host.Check(r.truth, out[:res.N], &res))(t)
	})
}

// What cannot be walked says so: the reason is the gap's.
func TestGaps(t *testing.T) {
	tl := newTools()
	out := make([]merge.Frame, 512)
	for _, g := range []struct {
		name   string
		want   merge.Gap
		make   func(r *recorded, c *clr.Capture) bool
		untrue bool // the CLR's report holds a frame that is not there
	}{
		{"no answer", merge.GapNoAnswer,
			func(_ *recorded, c *clr.Capture) bool { c.Status = clr.CaptureNoAnswer; return true }, false},
		{"gone", merge.GapGone, func(_ *recorded,
			c *clr.Capture) bool {
			c.Status = clr.CaptureGone
			return true
		}, false},
		{"foreign", merge.GapForeignStack,
			func(_ *recorded, c *clr.Capture) bool { c.Status = clr.CaptureForeign; return true }, false},
		{"off its stack", merge.GapForeignStack, func(r *recorded, c *clr.Capture) bool {
			move(c, 0, c.Thread.StackHigh-sp(r))
			return true
		}, false},
		{"cut, as is known", merge.GapTruncated, func(r *recorded, c *clr.Capture) bool {
			c.Stack.Data, c.Truncated, c.Frames = c.Stack.Data[:8], true, nil
			return r.top() > 1
		}, false},
		{"cut, as nobody knows", merge.GapUnreadable, func(r *recorded, c *clr.Capture) bool {
			c.Stack.Data, c.Frames = c.Stack.Data[:8], nil
			return r.top() > 1
		}, false},
		{"refused", merge.GapCLRRefused, func(r *recorded, c *clr.Capture) bool {
			c.Frames, c.Result = nil, clr.E_FAIL
			kind := vm.Unmanaged
			if r.top() >= 0 {
				kind, _ = r.w.CLR.Codes.At(r.truth[r.top()].State.PC)
			}
			return kind == vm.Method && r.top() < 3
		}, false},
		{"a frame the walk has passed", merge.GapMismatch, func(r *recorded, c *clr.Capture) bool {
			if len(c.Frames) == 0 || r.top() < 0 {
				return false
			}
			below := clr.SnapshotFrame{Function: 1, IP: c.Frames[0].IP, SP: sp(r) - 64, FP: sp(r) - 64}
			c.Frames = append([]clr.SnapshotFrame{below}, c.Frames...)
			return true
		}, true},
		{"cut by the CLR", merge.GapCLRCut, func(r *recorded, c *clr.Capture) bool {
			n := len(c.Frames)
			if n == 0 || !c.Frames[n-1].Marker() || r.top() < 0 || c.Result != clr.S_OK {
				return false
			}
			c.Frames = c.Frames[:n-1]
			return true
		}, false},
	} {
		t.Run(g.name, func(t *testing.T) {
			n := 0
			for i := range recordings() {
				r := &recordings()[i]
				c := r.capture
				if !g.make(r, &c) {
					continue
				}
				_, m := tl.use(r)
				clear(out)
				res := m.Merge(&c, out)
				must.True(t, !res.Complete(),
					"%v, %v: a stack with something missing is said to be complete", r.w.Variant, r.w.Arch)
				if res.Gap == g.want {
					n++
				}
				if _, err := r.w.Host.Check(r.truth, out[:res.N], &res); err != nil && !g.untrue {
					t.Fatalf("%v: %+v", err, res)
				}
				// What the CLR reported is in the stack all the same.
				if said := managedOf(&c); res.Managed != said && res.Gap != merge.GapCLRCut {
					t.Fatalf("%v: %d of the CLR's %d frames are there", res.Gap, res.Managed, said)
				}
			}
			expect.True(t, n >= 3, "%d stacks with gap %v only", n, g.want)
		})
	}
}

func managedOf(c *clr.Capture) (n int) {
	for i := range c.Frames {
		if !c.Frames[i].Marker() {
			n++
		}
	}
	return n
}

// A merge into any room is the front of the whole one, with a gap where the room
// ends.
func TestRoom(t *testing.T) {
	tl := newTools()
	whole, out := make([]merge.Frame, 512), make([]merge.Frame, 512)
	both(t, every, func(t *testing.T, r *recorded) {
		_, m := tl.use(r)
		full := m.Merge(&r.capture, whole)
		for room := 0; room <= full.N; room++ {
			res := m.Merge(&r.capture, out[:room])
			if res.N > room || room < full.N && room > 0 && res.Complete() {
				t.Fatalf("room for %d of %d: %+v", room, full.N, res)
			}
			if room > 0 && room < full.N && out[res.N-1].Kind != unwind.KindGap {
				t.Fatalf("room for %d of %d, and the end shows no gap: %+v", room, full.N, res)
			}
		}
	})
}
