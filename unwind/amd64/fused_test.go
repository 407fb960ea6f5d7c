package amd64

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/walktest"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// fusedFns are functions whose CFA counts from RSP or RBP and that save any
// registers, now and then two in one place.
func fusedFns(rnd *rand.Rand) (fns []fn, kinds []fusedFn) {
	for range 64 {
		k := fusedFn{size: 8 * (1 + rnd.Uint64N(9)), rbp: rnd.IntN(3) == 0}
		f := fn{Program: append([]byte{0x0e}, binary.AppendUvarint(nil, k.size)...)}
		if k.rbp {
			k.size = max(k.size, 16)
			f.Program = []byte{0x0c, dwarfRBP, 16}
		}
		for i, reg := range []byte{dwarfRBX, dwarfRBP, 12, 13, 14, 15} {
			if slot := 2 + rnd.Uint64N(14); rnd.IntN(2) == 0 && slot <= k.size/8 {
				k.slots[i] = slot
				f.Program = append(f.Program, 0x80|reg, byte(slot))
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
// follows one whose RBP is still unused.
func fusedStack(rnd *rand.Rand, s *stack, kinds []fusedFn, frames int) Registers {
	for i := uint64(0); i < stackSize; i += 8 {
		s.Set(stackLow+i, rnd.Uint64())
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
	for range rnd.IntN(frames) {
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
		put = func(v uint64) { s.Set(ra, v) }
		if slot := f.slots[1]; slot != 0 {
			setBP = func(v uint64) { s.Set(cfa-8*slot, v) }
		}
		sp = cfa
	}
	put([]uint64{jitIP, 0, at(0) + 1<<40}[rnd.IntN(3)])
	return r
}

func TestFewFusedSteps(t *testing.T) {
	lab.FewFusedSteps(t, fewSteps, func(w walktest.Walker) bool {
		return w.(*Unwinder).lookup(unwind.Address{IP: at(0), Exact: true}).bits&fewBit != 0
	})
}

func TestFusedAgreesWithStep(t *testing.T) {
	stack := newStack()
	f := walktest.Fused{
		New: newCached, Section: logSize, Low: stackLow, Stack: stack.Data,
		Functions: func(rnd *rand.Rand) (*module.Table, func(int) context.Registers) {
			fns, kinds := fusedFns(rnd)
			return makeTable(t, 1, fns...),
				func(frames int) context.Registers {
					return context.FromAMD64(fusedStack(rnd, stack,
						kinds, frames))
				}
		},
		Forget: func(rnd *rand.Rand, r *context.Registers) {
			r.AMD64.Known = r.AMD64.Known&rnd.Uint32() | 1<<context.RSP
		},
		Managed: memory.Range{Start: at(60), End: at(61)},
	}
	f.Run(t)
}

// TestSectionLimit: fused steps read what a stack pointer inside the bounds may reach. Above the bounds, they
// read all.
func TestSectionLimit(t *testing.T) {
	hot := memory.Run{Addr: stackLow, Data: make([]byte, 64)}
	for _, c := range []struct {
		sp, high uint64
		want     int
	}{
		{stackLow, 0, 64}, {stackLow, stackLow + 64, 64}, {stackLow, stackLow + 24, 24},
		{stackLow - 8, stackLow, 0}, {stackLow + 32, stackLow + 24, 64}, {stackLow + 32, stackLow - 8, 64},
	} {
		var s section
		if s.limit(hot, c.sp, &unwind.Bounds{High: c.high}); len(s.hot.Data) != c.want {
			t.Errorf("SP %#x, high end %#x: %d bytes, want %d", c.sp, c.high, len(s.hot.Data), c.want)
		}
	}
}

// TestFusedEdges: fused steps read only words that are whole in the hot run, wherever it ends.
func TestFusedEdges(t *testing.T) {
	const most, low = 80, stackLow
	data := bytes.Repeat([]byte{1}, most)
	for _, c := range []struct {
		name string
		form *form
		rule uint64
		cfa  uint64 // above SP
		bp   uint64 // RBP's slot, above SP
	}{
		{"CFI", &cfiForm, uint64(RuleSP) | 3<<offsetShift | 2<<(slotShift+4), 24, 8},
		{"PE", &peForm, uint64(RuleNear) | 3<<offsetShift | 6<<(slotShift+4), 24, 8},
		{"PE, in the home area", &peForm, uint64(RuleNear) | 1<<offsetShift | 1<<(slotShift+4), 8, 32},
	} {
		u := New()
		for size := range uint64(most) {
			for sp := range size + 1 {
				r := start(at(0), low+sp)
				u.section.form = *c.form
				u.section.hot = memory.Run{Addr: low, Data: data[:size]}
				u.section.out = make([]unwind.Frame, 1)
				want := 0
				if sp+max(c.cfa, c.bp+8) <= size {
					want = 1
				}
				if n := u.fused(Rule{c.rule}, &r); n != want {
					t.Fatalf("%s: %d bytes, SP at %d: %d steps, want %d", c.name, size, sp, n, want)
				}
			}
		}
	}
}

// Fused steps stop at a frame pointer below the stack pointer, because the return address would lie below
// the stack pointer, too.
func TestFusedLowFramePointer(t *testing.T) {
	for _, c := range []struct {
		name string
		form *form
		rule uint64
	}{
		{"CFI", &cfiForm, uint64(RuleBP) | 2<<offsetShift},
		{"PE", &peForm, uint64(RuleNearBP) | 1<<offsetShift},
	} {
		const sp = stackLow + 256
		for _, bp := range []uint64{sp - 8, sp - 1, sp} {
			r := start(at(0), sp)
			r.GPR[context.RBP], r.Known = bp, r.Known|1<<context.RBP
			again, u := r, New()
			data := bytes.Repeat([]byte{1}, 512)
			u.section.form = *c.form
			u.section.hot = memory.Run{Addr: stackLow, Data: data}
			u.section.out = make([]unwind.Frame, 1)
			mem, f := memory.New(u.section.hot), unwind.Frame{}
			expect.Equal(t, u.fused(Rule{c.rule}, &r) == 1, bp == sp)
			stepped := stepHot(Rule{c.rule}, c.form, &again, false, mem, &unwind.Bounds{}, &f)
			expect.Equal(t, stepped, bp == sp)
		}
	}
}

// Fused steps end at an address whose rule was made for an interrupted ip.
func TestFusedAfterExact(t *testing.T) {
	const rule, ra = uint64(RuleNear) | 1<<offsetShift, 0x0101_0101_0101_0101
	for _, c := range []struct {
		bits  uint64
		steps int
	}{{rule, 4}, {rule | exactBit, 1}, {rule | managedBit, 1}} {
		u, r := New(), start(at(0), stackLow)
		*u.place(ra - 1) = entry{ra - 1, Rule{c.bits}}
		u.section.form, u.section.out = peForm, make([]unwind.Frame, 4)
		u.section.hot = memory.Run{Addr: stackLow, Data: bytes.Repeat([]byte{1}, 80)}
		expect.Equal(t, u.fused(Rule{rule}, &r), c.steps, "steps with a rule of bits %#x", c.bits)
	}
}
