package image

import "math/rand/v2"

// RandomARM64 returns a random function. Every shape is possible. It panics if Func refuses the shape;
// a test checks that this does not happen.
func RandomARM64(r *rand.Rand, f Format, name string) Func {
	fn, err := randomShapeARM64(r, f).Func(f, name)
	if err != nil {
		panic(err)
	}
	return fn
}

func randomShapeARM64(r *rand.Rand, f Format) ShapeARM64 {
	yes := func(oneIn int) bool { return r.IntN(oneIn) == 0 }
	s := ShapeARM64{Body: r.IntN(8), TailJump: yes(8)}
	if yes(8) {
		s.Leaf, s.NoInfo = true, f == PE && yes(2)
		return s
	}
	s.Layout = LayoutARM64(r.IntN(int(layoutsARM64)))
	s.RegI, s.RegF = r.IntN(maxRegI+1), 0
	if yes(3) {
		s.RegF = r.IntN(maxRegF + 1)
	}
	if s.FrameSize = randomAlloc(r); yes(8) {
		s.FrameSize = 248 + uint32(r.IntN(272)) // about what a pre-indexed store can allocate
	}
	s.Homing, s.PAC, s.Spread = yes(5), yes(4), yes(6)
	switch r.IntN(8) {
	case 0:
	case 1, 2:
		s.Link = true
	default:
		s.FramePointer = true
		s.Dynamic = yes(4)
		s.EarlyFP = s.Layout == LayoutRecordFirst && (f == ELF || !s.Dynamic) && yes(2)
	}
	if s.Link || s.FramePointer {
		s.Calls = r.IntN(4)
	}
	if f == PE {
		s.Xdata = yes(6)
		s.Fragment = yes(5)
		s.Late = s.Fragment && s.RegF > 0 && !s.Dynamic && s.Layout != LayoutCanonical && yes(2)
	}
	return s
}
