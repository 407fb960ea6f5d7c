package amd64

import (
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/walktest"
	"github.com/seedwalk/seedwalk/unwind"
)

var lab = walktest.Lab{
	Arch: context.ArchAMD64,
	New: func(tb testing.TB, fns ...fn) walktest.Walker {
		return unwinder(makeTable(tb, 1, fns...))
	},
	Start: func(ip, sp uint64) context.Registers { return context.FromAMD64(start(ip, sp)) },
	Plain: fn{Program: []byte{0x0e, 16, 0x80 | 3, 2}},
	Last:  fn{Program: []byte{0x07, 16}},
	ByFP:  fn{Program: []byte{0x0c, 6, 16, 0x80 | 6, 2}},
	Side:  fn{Program: []byte{0x0c, 10, 0}},
	Big: fn{Program: []byte{0x0e, 64, 0x80 | 3, 7, 0x80 | 6, 6, 0x80 | 12, 5, 0x80 | 13,
		4, 0x80 | 14, 3, 0x80 | 15, 2}},
	BigReturn: 56,
	FP:        1 << context.RBP,
	Guessed:   1<<context.RSP | 1<<context.RBP,
	Hostile: []walktest.Hostile{
		{Name: "frame pointers in a ring, guessed", IP: 0x4242, FP: sp0, Guess: true,
			Fill: walktest.Ring(jitIP), Stop: unwind.Managed},
		{Name: "CFA that is the stack pointer", Fns: []fn{{Program: []byte{0x0e, 0}}}, IP: at(0),
			N: 1, Stop: unwind.NoProgress},
		{Name: "a signal frame above itself", Fns: []fn{{Program: []byte{0x14, 7, 1, 0x09, 16, 0, 0x08, 0},
			Signal: true}}, IP: at(0), Stop: unwind.NoProgress},
	},
	Word: func(rnd *rand.Rand) uint64 {
		switch rnd.IntN(4) {
		case 0:
			return rnd.Uint64()
		case 1:
			return stackLow + rnd.Uint64N(stackSize)&^7
		case 2:
			return jitLo + rnd.Uint64N(jitHi-jitLo)
		}
		return textBias + textLo + rnd.Uint64N(uint64(len(effects))*fnSize)
	},
}

// TestWalks runs the tests that both architectures share.
func TestWalks(t *testing.T) {
	for _, e := range effects {
		lab.Real = append(lab.Real, fn{Program: e.program})
	}
	lab.Run(t)
}

func BenchmarkWalk(b *testing.B)     { lab.BenchmarkWalk(b, 128) }
func BenchmarkRecorded(b *testing.B) { lab.BenchmarkRecorded(b) }
func BenchmarkGuess(b *testing.B)    { lab.BenchmarkGuess(b) }
