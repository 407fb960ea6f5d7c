package image

import "math/rand/v2"

// RandomAMD64 returns a random function that can be called. Every shape is possible, and half of the
// functions are small. It panics if Func refuses the shape; a test checks that this does not happen.
func RandomAMD64(r *rand.Rand, f Format, name string) Func {
	return mustAMD64(randomShape(r, f), f, name)
}

// RandomTrapAMD64 draws a handler of traps (PE): a function that is entered with
// a machine frame.
func RandomTrapAMD64(r *rand.Rand, name string) Func {
	s := randomShape(r, PE)
	s.MachineFrame, s.ErrorCode = true, r.IntN(2) == 0
	s.Leaf, s.NoInfo, s.Home, s.TailJump = false, false, false, false
	return mustAMD64(s, PE, name)
}

func mustAMD64(s ShapeAMD64, f Format, name string) Func {
	fn, err := s.Func(f, name)
	if err != nil {
		panic(err)
	}
	return fn
}

func randomShape(r *rand.Rand, f Format) ShapeAMD64 {
	yes := func(oneIn int) bool { return r.IntN(oneIn) == 0 }
	s := ShapeAMD64{
		Body: r.IntN(8), RepRet: yes(8), TailJump: yes(8), JumpForm: JumpForm(r.IntN(3)),
	}
	if yes(8) {
		s.Leaf, s.NoInfo = true, f == PE && yes(2)
		s.Home = f == PE && !s.NoInfo && yes(4)
		return s
	}
	s.Calls = r.IntN(4)
	s.Alloc = randomAlloc(r)
	s.Spread = yes(4)
	s.SaveByMov = yes(3)
	kept := []Reg{rbx, rbp, r12, 13, 14, r15}
	if f == PE {
		kept = append(kept, rsi, rdi)
	}
	s.Saves = someOf(r, kept)
	if s.FramePointer = yes(3); s.FramePointer {
		s.Dynamic = yes(2)
	}
	if f == PE {
		s.windows(r, yes, kept)
	}
	return s
}

// windows chooses the properties that only Windows functions have.
func (s *ShapeAMD64) windows(r *rand.Rand, yes func(int) bool, kept []Reg) {
	if yes(3) {
		s.SavesXMM = someOf(r, []Reg{6, 7, 8, 9, 10, 11, 12, 13, 14, r15})
	}
	s.Home = yes(3)
	s.Chained = yes(4)
	if s.Spread { // UNWIND_INFO cannot say prologs of more than 255 bytes
		s.SavesXMM = s.SavesXMM[:min(4, len(s.SavesXMM))]
	}
	if !s.FramePointer {
		return
	}
	if yes(2) {
		s.FrameReg = kept[r.IntN(len(kept))]
	}
	if s.EarlyFP = yes(4) && !s.savesBelow(); !s.EarlyFP {
		s.FPOffset = 16 * uint32(r.IntN(16))
	}
}

// randomAlloc returns a random frame size. Most are small. Some exceed the range of each encoding.
func randomAlloc(r *rand.Rand) uint32 {
	switch r.IntN(16) {
	case 0, 1, 2, 3:
		return 0
	case 4:
		return uint32(r.IntN(1 << 12))
	case 5:
		return uint32(r.IntN(1 << 14))
	}
	return uint32(r.IntN(160))
}

// someOf draws a subset in random order.
func someOf(r *rand.Rand, from []Reg) []Reg {
	r.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	return append([]Reg(nil), from[:r.IntN(len(from)+1)]...)
}
