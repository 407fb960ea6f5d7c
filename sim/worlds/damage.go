package worlds

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/stack/snapshot"
)

// Kind is a way in which a captured context can be bad.
type Kind struct {
	Name string
	// damage changes st, the registers captured, or stack, the copy of the stack.
	// It answers false if it cannot here.
	damage func(d *Damage, st *machine.State, stack []byte) bool
	// Change is the same for a kind made elsewhere; nil where damage is set.
	Change func(st *machine.State, stack []byte) bool
}

func (k *Kind) apply(d *Damage, st *machine.State, stack []byte) bool {
	if k.Change != nil {
		return k.Change(st, stack)
	}
	return k.damage(d, st, stack)
}

// Kinds lists them all.
var Kinds = []Kind{
	{Name: "bit flip in ip", damage: func(d *Damage, st *machine.State, _ []byte) bool {
		st.PC ^= 1 << d.rng.IntN(64)
		return true
	}},
	{Name: "bit flip in sp", damage: func(d *Damage, st *machine.State, _ []byte) bool {
		st.R[d.w.Arch.SP()] ^= 1 << d.rng.IntN(64)
		return true
	}},
	{Name: "bit flip in fp", damage: func(d *Damage, st *machine.State, _ []byte) bool {
		st.R[d.w.Arch.FP()] ^= 1 << d.rng.IntN(64)
		return true
	}},
	{Name: "bit flip in a preserved register", damage: func(d *Damage, st *machine.State, _ []byte) bool {
		st.R[d.pick(d.preserved())] ^= 1 << d.rng.IntN(64)
		return true
	}},
	{Name: "bit flip in the stack's copy", damage: func(d *Damage, _ *machine.State, stack []byte) bool {
		stack[d.rng.IntN(min(len(stack), 512))] ^= 1 << d.rng.IntN(8)
		return true
	}},
	{Name: "ip one byte less",
		damage: func(_ *Damage, st *machine.State, _ []byte) bool { st.PC--; return true }},
	{Name: "wrong frame", damage: wrongFrame},
	{Name: "wrong thread", damage: wrongThread},
	{Name: "stale context", damage: stale},
	{Name: "misaligned sp", damage: func(d *Damage, st *machine.State, _ []byte) bool {
		st.R[d.w.Arch.SP()] += uint64(1 + d.rng.IntN(7))
		return true
	}},
	{Name: "sp off by words", damage: func(d *Damage, st *machine.State, _ []byte) bool {
		st.R[d.w.Arch.SP()] += uint64(16 * (1 + d.rng.IntN(16)))
		return true
	}},
	{Name: "foreign sp", damage: func(d *Damage, st *machine.State, _ []byte) bool {
		low, high := d.t.M.Bounds()
		size := high - low
		st.R[d.w.Arch.SP()] = []uint64{low - 16, high, high + size, 0x10000, 0}[d.rng.IntN(5)]
		return true
	}},
	{Name: "ip in other unmanaged code", damage: func(d *Damage, st *machine.State, _ []byte) bool {
		st.PC = d.instruction([]*image.Image{d.w.Kit.App, d.w.Kit.System, d.w.Kit.CLR})
		return true
	}},
	{Name: "ip in other managed code", damage: func(d *Damage, st *machine.State, _ []byte) bool {
		st.PC = d.instruction([]*image.Image{d.w.Kit.Code})
		return true
	}},
	{Name: "ip in a stub", damage: func(d *Damage, st *machine.State, _ []byte) bool {
		im, f := d.w.Kit.Lookup([]string{sim.HijackStub, sim.Redirect,
			sim.ILStub(d.rng.IntN(4))}[d.rng.IntN(3)])
		st.PC = im.Base + uint64(f.RVA)
		return true
	}},
	{Name: "ip in freed code", damage: func(d *Damage, st *machine.State, _ []byte) bool {
		st.PC = d.w.Kit.Code.Base + d.rng.Uint64N(uint64(d.w.Kit.Code.Text[0])) // no function is there
		return true
	}},
	{Name: "non-canonical address", damage: func(d *Damage, st *machine.State, _ []byte) bool {
		bad := uint64(1) << (48 + d.rng.IntN(15))
		if d.rng.IntN(2) == 0 {
			st.PC |= bad
		} else {
			st.R[d.w.Arch.SP()] |= bad
		}
		return true
	}},
	{Name: "stack changes under the walk", damage: torn},
	{Name: "another return address", damage: anotherReturn},
	{Name: "fp off by a frame record", damage: func(d *Damage, st *machine.State, _ []byte) bool {
		st.R[d.w.Arch.FP()] += []uint64{16, ^uint64(15)}[d.rng.IntN(2)]
		return true
	}},
	{Name: "two contexts mixed", damage: mixed},
	{Name: "stale copy of the stack", damage: staleStack},
}

// Sorts counts what became of bad contexts of one kind.
type Sorts struct {
	Tries     int // captures damaged
	Same      int // of them, those whose seed is still the true one
	Caught    int // the verdict lets nothing through
	Unused    int // a seed was given, and the CLR did not look at it
	Refused   int // the CLR looked at it and refused
	True      int // what the CLR reported is true, from the top
	Lost      int // true, but frames are missing above
	Twins     int // a frame was reported that is not there: the context is that of another state
	Unchecked int // a frame was reported that is not there; the seeder had no data to check it with
	Wrong     int // a frame was reported that is not there
	Harmless  int // Unused, Refused, True
	Deaths    int // the CLR died
}

// Damage makes captured contexts bad, in one way.
type Damage struct {
	Kind  *Kind
	Sorts Sorts

	w     *sim.World
	t     *sim.Thread
	rng   *rand.Rand
	inner snapshot.Seeder
	old   map[clr.ThreadID]before
	truth []machine.Frame
	stack []byte
	at    uint64 // address of stack

	// The try under way.
	bad     machine.State
	applied bool
	verdict seed.Verdict
	same    bool
	mode    vm.Mode
}

// to puts the damage on w's sampler.
func (d *Damage) to(w *sim.World, rng *rand.Rand) {
	d.w, d.rng, d.old = w, rand.New(rand.NewPCG(rng.Uint64(), 1)), map[clr.ThreadID]before{}
	w.Host.Wrap = func(s snapshot.Seeder) snapshot.Seeder {
		d.inner = s
		return d
	}
	w.Host.Judge = d.judge
}

// Seed implements snapshot.Seeder: the true context is made bad, walked, and put
// back.
func (d *Damage) Seed(c *clr.Capture) seed.Verdict {
	if c.Redirected {
		return d.inner.Seed(c) // the registers are those of a capture that was made bad before
	}
	for _, t := range d.w.Threads() {
		if t.ID == c.Thread.ID {
			d.t = t
		}
	}
	d.truth = d.t.M.Truth(d.truth)
	trueVerdict := d.inner.Seed(c)
	trueSeed := c.Seed
	st := d.t.M.State()
	regs, stack := c.Regs, c.Stack.Data
	d.stack, d.at = append(d.stack[:0], stack...), c.Stack.Addr
	d.bad = st
	d.applied = d.Kind.apply(d, &d.bad, d.stack)
	d.old[c.Thread.ID] = before{st, slices.Clone(stack), c.Stack.Addr}
	if !d.applied {
		d.verdict, d.same = trueVerdict, true
		return trueVerdict
	}
	c.Regs, c.Stack.Data = d.bad.Registers(d.w.Arch), d.stack
	d.verdict = d.inner.Seed(c)
	c.Regs, c.Stack.Data = regs, stack
	d.same = c.Seed.Equal(&trueSeed) && d.verdict == trueVerdict
	d.mode = d.t.Mode
	return d.verdict
}

// Learn learns from the bad context, as the product does.
func (d *Damage) Learn(c *clr.Capture) {
	regs, stack := c.Regs, c.Stack.Data
	if d.applied && len(d.stack) == len(stack) {
		c.Regs, c.Stack.Data = d.bad.Registers(d.w.Arch), d.stack
	}
	d.inner.(*snapshot.WalkSeeder).Learn(c)
	c.Regs, c.Stack.Data = regs, stack
}

// judge sorts what became of a try.
func (d *Damage) judge(c *clr.Capture, truth []machine.Frame) {
	if !d.applied {
		return
	}
	s := &d.Sorts
	s.Tries++
	switch {
	case d.same:
		s.Same++
	case !d.verdict.Usable():
		s.Caught++
	case !c.Seeded, d.mode == vm.Preemptive: // no seed is passed; row 12 of the table
		s.Unused++
		s.Harmless++
	case len(c.Frames) == 0:
		s.Refused++
		s.Harmless++
	default:
		d.compare(c, truth)
	}
}

// compare holds what the CLR reported against the truth.
func (d *Damage) compare(c *clr.Capture, truth []machine.Frame) {
	s := &d.Sorts
	at, lost := 0, false
	for i := range c.Frames {
		f := &c.Frames[i]
		for at < len(truth) && !d.is(f, &truth[at]) {
			lost = lost || i == 0 && d.reported(&truth[at])
			at++
		}
		if at == len(truth) {
			d.wrong(c)
			return
		}
		at++
	}
	if lost {
		s.Lost++
		return
	}
	s.True++
	s.Harmless++
}

// checks reports whether the seeder has the unwind data of methods.
func (d *Damage) checks() bool { return d.w.SeedTables || d.w.SeedLearns }

// wrong counts a report with a frame that is not there.
func (d *Damage) wrong(c *clr.Capture) {
	switch s := &d.Sorts; {
	case d.twin(machine.FromRegisters(&c.Seed)):
		s.Twins++
	case !d.checks():
		s.Unchecked++
	default:
		s.Wrong++
	}
}

func (d *Damage) is(f *clr.SnapshotFrame, t *machine.Frame) bool {
	if f.IP != t.State.PC || f.SP != t.State.R[d.w.Arch.SP()] {
		return false
	}
	id, _ := d.w.Host.FunctionFromIP(t.State.PC)
	return f.Marker() || f.Function == id
}

// reported tells the frames the CLR reports.
func (d *Damage) reported(t *machine.Frame) bool {
	kind, _ := d.w.CLR.Codes.At(t.State.PC)
	return kind == vm.Method
}

func (d *Damage) pick(from []image.Reg) image.Reg { return from[d.rng.IntN(len(from))] }

func (d *Damage) preserved() []image.Reg {
	if d.w.Arch == image.ARM64 {
		return []image.Reg{19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}
	}
	return []image.Reg{3, 5, 6, 7, 12, 13, 14, 15}
}

// instruction is the address of a random instruction of the images.
func (d *Damage) instruction(from []*image.Image) uint64 {
	im := from[d.rng.IntN(len(from))]
	f := &im.Funcs[d.rng.IntN(len(im.Funcs))]
	return im.Base + uint64(f.RVA) + uint64(f.Ops[d.rng.IntN(len(f.Ops))].Off)
}

// wrongFrame takes the registers of one of the outer frames.
func wrongFrame(d *Damage, st *machine.State, _ []byte) bool {
	if len(d.truth) < 3 {
		return false
	}
	*st = d.truth[1+d.rng.IntN(len(d.truth)-2)].State
	return true
}

// wrongThread takes the registers of another thread.
func wrongThread(d *Damage, st *machine.State, _ []byte) bool {
	ts := d.w.Threads()
	t := ts[d.rng.IntN(len(ts))]
	if t == d.t || t.M.Depth() == 0 {
		return false
	}
	*st = t.M.State()
	return true
}

// before is what the last sample of a thread had.
type before struct {
	machine.State
	stack []byte
	at    uint64 // address of stack
}

// stale takes the registers that the thread had when it was sampled before.
func stale(d *Damage, st *machine.State, _ []byte) bool {
	old, ok := d.old[d.t.ID]
	if !ok || old.State == *st {
		return false
	}
	*st = old.State
	return true
}

// mixed takes some registers from the thread's last sample, and the others from this one.
func mixed(d *Damage, st *machine.State, _ []byte) bool {
	old, ok := d.old[d.t.ID]
	if !ok || old.State == *st {
		return false
	}
	now := *st
	if d.rng.IntN(2) == 0 {
		st.PC = old.PC
	}
	for i := range st.R {
		if d.rng.IntN(2) == 0 {
			st.R[i] = old.R[i]
		}
	}
	return *st != now && *st != old.State
}

// staleStack takes the copy of the stack from the thread's last sample, where the two overlap.
func staleStack(d *Damage, _ *machine.State, stack []byte) bool {
	old, ok := d.old[d.t.ID]
	now := slices.Clone(stack)
	switch {
	case !ok:
		return false
	case old.at < d.at:
		copy(stack, old.stack[min(d.at-old.at, uint64(len(old.stack))):])
	default:
		copy(stack[min(old.at-d.at, uint64(len(stack))):], old.stack)
	}
	return !slices.Equal(stack, now)
}

// anotherReturn replaces the return address of a frame by one that returns to another function.
func anotherReturn(d *Damage, _ *machine.State, stack []byte) bool {
	f := d.truth[d.rng.IntN(len(d.truth))].State.PC
	for i := 0; i+8 <= len(stack); i += 8 {
		if binary.LittleEndian.Uint64(stack[i:]) != f {
			continue
		}
		for range 100 {
			ip := d.instruction([]*image.Image{d.w.Kit.App, d.w.Kit.System, d.w.Kit.CLR, d.w.Kit.Code})
			if im, g := d.w.Find(ip - 1); g != nil && ip != f && returned(im, g, ip) {
				binary.LittleEndian.PutUint64(stack[i:], ip)
				return true
			}
		}
	}
	return false
}

// torn overwrites words of the copied stack by others of it, or by nothing.
func torn(d *Damage, _ *machine.State, stack []byte) bool {
	n := len(stack) / 8
	for range 1 + d.rng.IntN(8) {
		to := d.rng.IntN(min(n, 64))
		if d.rng.IntN(3) == 0 {
			clear(stack[8*to : 8*to+8])
			continue
		}
		from := d.rng.IntN(n)
		copy(stack[8*to:8*to+8], stack[8*from:8*from+8])
	}
	return true
}
