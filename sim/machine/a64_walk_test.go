package machine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// keptARM64 are the general registers that every function preserves: X19-X29.
const keptARM64 = 0x7ff << 19

// worldARM64 is an image of n random functions and more, and a thread.
func worldARM64(tb testing.TB, f image.Format, seed uint64, n int) *world {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 64))
	var funcs []image.Func
	for i := range n {
		funcs = append(funcs, image.RandomARM64(r, f, fmt.Sprintf("f%d", i)))
	}
	root := must.Get(image.ShapeARM64{RegI: 2, FrameSize: 64, Calls: 3, Body: 4, Root: true}.Func(f,
		"root"))(tb)
	funcs = append(funcs, root)
	if f == image.ELF {
		funcs = append(funcs, image.SignalReturn(image.ARM64))
	}
	im := must.Get(image.Build(image.ARM64, f, "random", imageBase, funcs))(tb)
	return worldOf(tb, im, seed)
}

// diffARM64 compares the known registers. X19 to X29 and D8 to D15, which functions preserve, must be
// known. X30 is compared without its pointer authentication code.
func diffARM64(got *context.ARM64, want *State) (s string) {
	if got.PC != want.PC {
		s += fmt.Sprintf(" pc %#x, not %#x", got.PC, want.PC)
	}
	if got.Sp != want.R[31] {
		s += fmt.Sprintf(" sp %#x, not %#x", got.Sp, want.R[31])
	}
	for r, v := range got.X {
		same := v == want.R[r] || r == 30 && strip(v) == strip(want.R[r])
		if got.Known>>r&1 != 0 && !same {
			s += fmt.Sprintf(" x%d %#x, not %#x", r, v, want.R[r])
		}
	}
	for i, v := range got.D {
		if got.Known>>(32+i)&1 != 0 && v != want.V[8+i][0] {
			s += fmt.Sprintf(" d%d %#x, not %#x", 8+i, v, want.V[8+i][0])
		}
	}
	if missing := (keptARM64 | 0xff<<32) &^ got.Known; missing != 0 {
		s += fmt.Sprintf(" unknown %#x", missing)
	}
	return s
}
