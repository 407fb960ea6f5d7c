package arm64

import (
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/walktest"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// fusedFns are functions whose CFA counts from SP or x29 and that save any
// registers, now and then two in one place.
func fusedFns(rnd *rand.Rand) (fns []fn, kinds []fusedFn) {
	for range 64 {
		k := fusedFn{size: 16 * (1 + rnd.Uint64N(4)), fp: rnd.IntN(3) == 0}
		f := fn{Program: []byte{0x0e, byte(k.size)}}
		if k.fp {
			f.Program = []byte{0x0c, regFP, 16}
		}
		for reg := byte(firstX); reg <= regLR; reg++ {
			slot := 1 + rnd.Uint64N(12)
			if reg != regLR && (rnd.IntN(2) == 0 || slot > k.size/8) {
				continue
			}
			if reg == regLR {
				if slot = 1 + rnd.Uint64N(min(6, k.size/8)); slot == k.x29 {
					slot = 3 - k.x29
				}
				k.lr = slot
			}
			if reg == regFP {
				slot = 1 + rnd.Uint64N(2)
				k.x29 = slot
			}
			f.Program = append(f.Program, 0x80|reg, byte(slot))
		}
		if rnd.IntN(3) == 0 {
			f.Program = append(f.Program, 0x05, 72+byte(rnd.IntN(8)), 1+byte(rnd.IntN(12)))
		}
		fns, kinds = append(fns, f), append(kinds, k)
	}
	return fns, kinds
}

type fusedFn struct {
	size    uint64
	fp      bool
	lr, x29 uint64 // words below the CFA
}

// fusedStack lays frames of these functions, as a program would: a frame of x29
// follows one whose x29 is still unused.
func fusedStack(rnd *rand.Rand, s *stack, kinds []fusedFn, frames int) Registers {
	for i := uint64(0); i < stackSize; i += 8 {
		s.Set(stackLow+i, rnd.Uint64())
	}
	sp := stackLow + 16*rnd.Uint64N(20)
	r := start(0, sp)
	for i := range r.X {
		r.X[i] = rnd.Uint64()
	}
	setFP := func(v uint64) { r.X[regFP] = v }
	put := func(ra uint64) { r.PC = ra }
	for range rnd.IntN(frames) {
		k := rnd.IntN(len(kinds))
		for kinds[k].fp && setFP == nil {
			k = rnd.IntN(len(kinds))
		}
		f := &kinds[k]
		put(at(k) | rnd.Uint64N(2)*0x21<<48) // signed, now and then
		cfa := sp + f.size
		if cfa > stackLow+stackSize-256 {
			return r
		}
		if f.fp {
			setFP(cfa - 16)
			setFP = nil
		}
		put = func(v uint64) { s.Set(cfa-8*f.lr, v) }
		if f.x29 != 0 {
			setFP = func(v uint64) { s.Set(cfa-8*f.x29, v) }
		}
		sp = cfa
	}
	put([]uint64{jitIP, 0, 1, at(0) + 1<<40}[rnd.IntN(4)])
	return r
}

func TestFewFusedSteps(t *testing.T) {
	lab.FewFusedSteps(t, fewSteps, func(w walktest.Walker) bool {
		return w.(*Unwinder).lookup(unwind.Address{IP: at(0), Exact: true}).saved&flagFew != 0
	})
}

func TestFusedAgreesWithStep(t *testing.T) {
	stack := newStack()
	f := walktest.Fused{
		New: newCached, Section: logSize, Low: stackLow, Stack: stack.Data,
		Functions: func(rnd *rand.Rand) (*module.Table, func(int) context.Registers) {
			fns, kinds := fusedFns(rnd)
			return makeTable(t, nil, fns...),
				func(frames int) context.Registers {
					return context.FromARM64(fusedStack(rnd, stack,
						kinds, frames))
				}
		},
		Forget:  func(rnd *rand.Rand, r *context.Registers) { r.ARM64.Known &= rnd.Uint64() },
		Managed: memory.Range{Start: at(60), End: at(61)},
	}
	f.Run(t)
}

// A register whose word is past the window's end is unknown after fused steps too.
func TestFusedSlotBehindTheWindow(t *testing.T) {
	saves := fn{Program: []byte{0x0e, 32, 0x80 | regLR, 3, 0x80 | firstX, 1}}
	u, s := unwinder(makeTable(t, nil, saves, saves, saves)), newStack()
	for i, lr := range []uint64{at(1), at(2), jitIP} {
		s.Set(sp0+32*uint64(i)+8, lr)
	}
	end := sp0 - stackLow + 2*32 + 16
	mem := memory.New(memory.Run{Addr: stackLow, Data: s.Data[:end:end]})
	for _, round := range []string{"rules made anew", "fused"} {
		r, out := start(at(0), sp0), make([]unwind.Frame, 8)
		n, _, stop := walkOf(u, &r, true, unwind.TrustContext, mem, nil, out)
		expect.True(t, n == 3 && stop == unwind.Managed && !known(&r, firstX) && r.Sp == sp0+96,
			"%s: %d frames, %v, x19 known: %v, SP %#x", round, n, stop, known(&r, firstX), r.Sp)
	}
}
