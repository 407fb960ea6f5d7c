package amd64

import (
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/unwind"
)

// fusedDepth is more than a section notes, so that one ends amid its like.
const fusedDepth = 2*logSize + 50

// fusedFns are functions whose CFA counts from RSP or RBP and that save any
// registers, now and then two in one place.
func fusedFns(rnd *rand.Rand) (fns []fn, kinds []fusedFn) {
	for range 64 {
		k := fusedFn{size: 8 * (1 + rnd.Uint64N(9)), rbp: rnd.IntN(3) == 0}
		f := fn{program: append([]byte{0x0e}, uleb(k.size)...)}
		if k.rbp {
			k.size = max(k.size, 16)
			f.program = []byte{0x0c, dwarfRBP, 16}
		}
		for i, reg := range []byte{dwarfRBX, dwarfRBP, 12, 13, 14, 15} {
			if slot := 2 + rnd.Uint64N(14); rnd.IntN(2) == 0 && slot <= k.size/8 {
				k.slots[i] = slot
				f.program = append(f.program, 0x80|reg, byte(slot))
			}
		}
		fns, kinds = append(fns, f), append(kinds, k)
	}
	return fns, kinds
}

type fusedFn struct {
	size  uint64
	rbp   bool
	slots [6]uint64
}

// fusedStack lays frames of these functions, as a program would: a frame of RBP
// follows one whose RBP nobody has used yet.
func fusedStack(rnd *rand.Rand, s *stack, kinds []fusedFn) Registers {
	for i := uint64(0); i < stackSize; i += 8 {
		s.set(stackLow+i, rnd.Uint64())
	}
	sp := stackLow + 8*rnd.Uint64N(40)
	r := start(0, sp)
	for i := range r.GPR {
		if i != context.RSP {
			r.GPR[i] = rnd.Uint64()
		}
	}
	setBP := func(v uint64) { r.GPR[context.RBP] = v }
	put := func(ra uint64) { r.RIP = ra }
	for range rnd.IntN(fusedDepth) {
		k := rnd.IntN(len(kinds))
		for kinds[k].rbp && setBP == nil {
			k = rnd.IntN(len(kinds))
		}
		f := &kinds[k]
		put(at(k))
		cfa := sp + f.size
		if cfa > stackLow+stackSize-256 {
			return r
		}
		if f.rbp {
			setBP(cfa - 16)
			setBP = nil
		}
		ra := cfa - 8
		put = func(v uint64) { s.set(ra, v) }
		if slot := f.slots[1]; slot != 0 {
			setBP = func(v uint64) { s.set(cfa-8*slot, v) }
		}
		sp = cfa
	}
	put([]uint64{jitIP, 0, at(0) + 1<<40}[rnd.IntN(3)])
	return r
}

// Walk agrees with steps in frames, every register and the reason, wherever the
// room, the bounds, the steps or the memory end.
func TestFusedAgreesWithStep(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 4))
	longest, stops := 0, map[unwind.Stop]int{}
	for round := range 40 {
		fns, kinds := fusedFns(rnd)
		table := makeTable(t, 1, fns...)
		if round%4 == 0 { // managed code amid a module's
			table = module.NewTable(2, []module.Module{*table.At(0)}, append(table.Managed(), memory.Range{Start: at(60), End: at(61)}))
		}
		u := unwinder(table)
		s := newStack()
		for range 100 {
			r := fusedStack(rnd, s, kinds)
			if rnd.IntN(8) == 0 {
				r.Known &= rnd.Uint32()
				r.Known |= 1 << context.RSP
			}
			n, stop := checkFused(t, u, &r, fusedWindow(rnd, s, r.SP()), fusedBounds(rnd, r.SP()), rnd.IntN(4) != 0, make([]unwind.Frame, fusedRoom(rnd)))
			longest = max(longest, n)
			stops[stop]++
			if t.Failed() {
				return
			}
		}
	}
	if longest <= logSize {
		t.Errorf("no walk longer than a section: %d frames", longest)
	}
	for _, stop := range []unwind.Stop{unwind.Managed, unwind.BufferFull, unwind.Limit, unwind.NullReturn, unwind.OutOfStack, unwind.Unreadable, unwind.NoInfo} {
		if stops[stop] == 0 {
			t.Errorf("no walk ended %v: %v", stop, stops)
		}
	}
}

func fusedRoom(rnd *rand.Rand) int {
	switch rnd.IntN(4) {
	case 0:
		return rnd.IntN(40)
	case 1:
		return rnd.IntN(4)
	}
	return 2 * fusedDepth
}

func fusedBounds(rnd *rand.Rand, sp uint64) *unwind.Bounds {
	b := &unwind.Bounds{}
	switch rnd.IntN(6) {
	case 0:
		b.Low, b.High = stackLow, stackLow+8*rnd.Uint64N(stackSize/8)
	case 1:
		b.Low = sp + 8*rnd.Uint64N(64)
		b.High = b.Low + 8*rnd.Uint64N(64)
	case 2:
		b.Low, b.High = stackLow, sp+8*rnd.Uint64N(64)
	}
	if rnd.IntN(4) == 0 {
		b.MaxSteps = 1 + rnd.IntN(fusedDepth)
	}
	return b
}

// fusedWindow is the stack, or parts of it: the greatest becomes the hot run.
func fusedWindow(rnd *rand.Rand, s *stack, sp uint64) *memory.Window {
	a := rnd.IntN(len(s.data))
	switch rnd.IntN(3) {
	case 0:
		return s.window()
	case 1: // a gap beside the first frames
		a = int(sp-stackLow) + rnd.IntN(8)*8
	}
	b := min(len(s.data), a+rnd.IntN(8)*8)
	return memory.New(memory.Run{Addr: stackLow, Data: s.data[:a]}, memory.Run{Addr: stackLow + uint64(b), Data: s.data[b:]})
}

func checkFused(t *testing.T, u *Unwinder, r *Registers, mem *memory.Window, b *unwind.Bounds, exact bool, out []unwind.Frame) (int, unwind.Stop) {
	t.Helper()
	want, stepped, why := stepped(u, r, exact, mem, b, len(out))
	for _, mode := range []string{"cold", "warm"} {
		if mode == "cold" {
			u.flush()
		}
		s := stateOf(r, exact)
		got := u.Walk(&s, mem, b, out)
		if got.N != len(want) || got.Stop != why || s.Exact != stepped.Exact || s.Trust != stepped.Trust || s.Regs.AMD64 != stepped.Regs.AMD64 {
			t.Errorf("%s: Walk %d frames, %v, %+v\nStep %d, %v, %+v", mode, got.N, got.Stop, s.Regs.AMD64, len(want), why, stepped.Regs.AMD64)
		}
		for i := range want {
			if i < got.N && out[i] != want[i] {
				t.Errorf("%s: frame %d: %+v, stepped %+v", mode, i, out[i], want[i])
			}
		}
	}
	return len(want), why
}

// stepped is Walk's contract in words of Step.
func stepped(u *Unwinder, r *Registers, exact bool, mem *memory.Window, b *unwind.Bounds, room int) (out []unwind.Frame, s unwind.State, why unwind.Stop) {
	limit := b.MaxSteps
	if limit == 0 {
		limit = unwind.DefaultMaxSteps
	}
	s = stateOf(r, exact)
	for {
		switch {
		case u.table.IsManaged(s.Address().Lookup()):
			return out, s, unwind.Managed
		case len(out) == room:
			return out, s, unwind.BufferFull
		case len(out) == limit:
			return out, s, unwind.Limit
		}
		var f unwind.Frame
		why = u.Step(&s, mem, b, &f)
		if out = append(out, f); why != unwind.StopNone {
			return out, s, why
		}
	}
}
