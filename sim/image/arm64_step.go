package image

// The steps of a prolog, and how an epilog undoes them.

type stepKind uint8

const (
	stepSave  stepKind = iota // of one register or two
	stepHome                  // arguments, which are not restored
	stepAlloc                 // SP goes down by at
	stepFP                    // x29 = SP + at
	stepSign                  // the return address gets its code
	stepNop
)

// stepARM64 is one instruction of a prolog.
type stepARM64 struct {
	kind   stepKind
	vector bool
	pair   bool
	pre    bool // SP goes down by at first
	keyB   bool
	r, r2  Reg
	at     int64 // from SP, bytes
}

// saveOne and savePair make saves; with pre SP goes down by at.
func saveOne(r Reg, at int64, pre bool) stepARM64 {
	return stepARM64{kind: stepSave, r: r, at: at, pre: pre}
}

func savePair(r, r2 Reg, at int64, pre bool) stepARM64 {
	return stepARM64{kind: stepSave, pair: true, r: r, r2: r2, at: at, pre: pre}
}

// allocSteps returns the fewest steps that move SP by n, a multiple of 16.
func allocSteps(n int64) (s []stepARM64) {
	if n>>12 != 0 && n != 1<<12 {
		s = append(s, stepARM64{kind: stepAlloc, at: n &^ 0xfff})
		n &= 0xfff
	}
	if n != 0 {
		s = append(s, stepARM64{kind: stepAlloc, at: n})
	}
	return s
}

// do emits the step.
func (s *stepARM64) do(a *asm) {
	switch s.kind {
	case stepSave, stepHome:
		a.word(s.storeWord(), s.effects(Store, StoreV)...)
	case stepAlloc:
		a.addImm(xsp, xsp, -s.at)
	case stepFP:
		a.addImm(x29, xsp, s.at)
	case stepSign:
		a.word(s.signWord(a64PACIASP, a64PACIBSP), Effect{Kind: Sign})
	default:
		a.word(a64Nop)
	}
}

// undo emits the epilog's instruction for the step, if there is one.
func (s *stepARM64) undo(a *asm) {
	switch s.kind {
	case stepSave:
		a.word(s.loadWord(), s.effects(Load, LoadV)...)
	case stepHome:
		if s.pre {
			a.addImm(xsp, xsp, s.at)
		}
	case stepAlloc:
		a.addImm(xsp, xsp, s.at)
	case stepSign:
		a.word(s.signWord(a64AUTIASP, a64AUTIBSP), Effect{Kind: Auth})
	}
}

func (s *stepARM64) signWord(keyA, keyB uint32) uint32 {
	if s.keyB {
		return keyB
	}
	return keyA
}

// storeWord and loadWord encode the store, and the load that undoes it.
func (s *stepARM64) storeWord() uint32 {
	p, one := &a64Pair[index(s.vector)], &a64Single[index(s.vector)]
	return s.memoryWord(-1, p.stp, p.stpPre, one.str, one.strPre)
}

func (s *stepARM64) loadWord() uint32 {
	p, one := &a64Pair[index(s.vector)], &a64Single[index(s.vector)]
	return s.memoryWord(1, p.ldp, p.ldpPost, one.ldr, one.ldrPost)
}

// memoryWord completes one of four instructions: for a pair, a pair that moves SP, one register, one that
// moves SP. sign is the direction in which SP moves.
func (s *stepARM64) memoryWord(sign int64, pair, movingPair, one, movingOne uint32) uint32 {
	switch {
	case s.pair && s.pre:
		return pairWord(movingPair, s.r, s.r2, sign*s.at)
	case s.pair:
		return pairWord(pair, s.r, s.r2, s.at)
	case s.pre:
		return indexWord(movingOne, s.r, sign*s.at)
	}
	return offsetWord(one, s.r, s.at)
}

// effects returns those of the store, or of the load that undoes it. A store moves SP
// last, because its address is relative to the SP before it.
func (s *stepARM64) effects(x, v EffectKind) []Effect {
	kind, at := x, s.at
	if s.vector {
		kind = v
	}
	moved := s.at
	if store := x == Store; s.pre && store {
		at, moved = -s.at, -s.at
	} else if s.pre {
		at = 0
	}
	e := []Effect{{Kind: kind, Reg: s.r, Base: xsp, Imm: at}}
	if s.pair {
		e = append(e, Effect{Kind: kind, Reg: s.r2, Base: xsp, Imm: at + 8})
	}
	if s.pre {
		e = append(e, Effect{Kind: Add, Reg: xsp, Base: xsp, Imm: moved})
	}
	return e
}
