package arm64

import (
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/walktest"
	"github.com/seedwalk/seedwalk/unwind"
)

// labCode is code without unwind data, of each kind that the walker knows.
var labCode = []uint32{insPLT0Push, 0x90000110, 0xf9400211, 0x91000210, insBRX17, 0xa9bf7bfd, 0x910003fd,
	0x94000010, 0xa8c17bfd, 0xd65f03c0, insMovX8Sigreturn, insSVC}

var lab = walktest.Lab{
	Arch: context.ArchARM64,
	New: func(tb testing.TB, fns ...fn) walktest.Walker {
		return unwinder(makeTable(tb, labCode, fns...))
	},
	Start: func(pc, sp uint64) context.Registers { return context.FromARM64(start(pc, sp)) },
	Plain: fn{Program: []byte{0x0e, 16, 0x9d, 2, 0x9e, 1}},
	Last:  fn{Program: []byte{0x07, 30}},
	ByFP:  fn{Program: []byte{0x0c, 29, 16, 0x9d, 2, 0x9e, 1}},
	Side:  fn{Program: []byte{0x0c, 10, 0, 0x9e, 1}},
	Big: fn{Program: []byte{0x0e, 64, 0x9d, 8, 0x9e, 7, 0x93, 6, 0x94, 5,
		0x95, 4, 0x96, 3, 0x97, 2, 0x98, 1}},
	BigReturn: 8,
	FP:        1 << 29,
	Guessed:   1<<29 | 1<<30,
	Hostile: []walktest.Hostile{
		{Name: "frame records in a ring, guessed", Fns: []fn{{}}, IP: 0x4240, FP: sp0, Guess: true,
			Fill: walktest.Ring(codeLo + 0x400), Stop: unwind.NoInfo},
		{Name: "signal frame to itself", Fns: []fn{{}}, IP: sp0 - 16, Fill: func(s *stack) {
			s.Set(sp0-16, insSVC<<32|insMovX8Sigreturn)
			s.Set(sp0+sigSP, sp0)
			s.Set(sp0+sigPC, sp0-12)
		}, Stop: unwind.NoProgress},
		{Name: "signal frames up and down", Fns: []fn{{}}, IP: sp0 - 16, Fill: func(s *stack) {
			s.Set(sp0-16, insSVC<<32|insMovX8Sigreturn)
			s.Set(sp0+sigSP, sp0+0x1000)
			s.Set(sp0+sigPC, sp0-12)
			s.Set(sp0+0x1000+sigSP, sp0)
			s.Set(sp0+0x1000+sigPC, sp0-12)
		}, Stop: unwind.Limit},
	},
	Word: func(rnd *rand.Rand) uint64 {
		switch rnd.IntN(6) {
		case 0:
			return rnd.Uint64()
		case 1:
			return stackLow + rnd.Uint64N(stackSize)&^7
		case 2:
			return jitLo + rnd.Uint64N(jitHi-jitLo)
		case 3:
			return codeLo + rnd.Uint64N(64)&^3
		}
		return textBias + textLo + rnd.Uint64N(uint64(len(cfiEffects))*fnSize)&^3
	},
}

// TestWalks runs the tests that both architectures share.
func TestWalks(t *testing.T) {
	for _, e := range cfiEffects {
		lab.Real = append(lab.Real, fn{Program: e.program})
	}
	lab.Run(t)
}

// TestUnwindCodesDoNotAllocate is the part of the allocation tests that only this architecture has.
func TestUnwindCodesDoNotAllocate(t *testing.T) {
	u, mem, f := New(), newStack().Window(), unwind.Frame{}
	expect.Equal(t, testing.AllocsPerRun(100, func() {
		r := start(at(0), sp0)
		leaveOf(&r, true, func(s *unwind.State) (bool, unwind.Stop) {
			return u.runCodes([]byte{0xc8, 0x02, 0xe1, 0x81, 0xe4}, s, mem, &unbounded, &f)
		})
	}), 0, "allocations")
}

func BenchmarkWalk(b *testing.B)     { lab.BenchmarkWalk(b, 100) }
func BenchmarkRecorded(b *testing.B) { lab.BenchmarkRecorded(b) }
func BenchmarkGuess(b *testing.B)    { lab.BenchmarkGuess(b) }
