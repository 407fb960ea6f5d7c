package image

import (
	"bytes"
	"slices"
)

// Packed .pdata words. Source: Microsoft, "ARM64 exception handling", "Packed
// unwind data".

const (
	packedWhole    = 1 // Flag: a function
	packedFragment = 2 // a part of one without prolog and epilog
)

// sectionsARM64 are the parts of a function that have unwind codes.
type sectionsARM64 struct {
	prolog []Op
	late   []Op // the fragment's own prolog
	epilog []Op // with the return
}

func sectionsOf(f *Func) (s sectionsARM64) {
	n := 0
	for n < len(f.Ops) && f.Ops[n].Part == Prolog && (f.Chained == 0 || f.Ops[n].Off < f.Chained) {
		n++
	}
	s.prolog = f.Ops[:n]
	if i := f.At(f.Chained); f.Chained != 0 && i >= 0 {
		n = i
		for n < len(f.Ops) && f.Ops[n].Part == Prolog {
			n++
		}
		s.late = f.Ops[i:n]
	}
	n = len(f.Ops)
	for n > 0 && f.Ops[n-1].Part == Epilog {
		n--
	}
	s.epilog = f.Ops[n:]
	return s
}

// packARM64 returns the packed word that describes f's prolog and epilog, instruction by instruction.
// ok is false if there is none. Flag and function length are 0 in the word.
func packARM64(f *Func) (word uint32, ok bool) {
	parts := sectionsOf(f)
	s := fieldsOf(parts.prolog)
	p := planARM64{s: s, f: PE, fp: -1}
	p.plan()
	p.prolog()
	p.epilog()
	code := append(append([]Op(nil), parts.prolog...), parts.epilog...)
	if !sameCode(p.asm.ops, code) || s.RegF == 1 || s.FrameSize > maxPacked || s.PAC && !s.FramePointer {
		return 0, false
	}
	word = uint32(s.RegI)<<16 | s.FrameSize/16<<23
	if s.RegF > 0 {
		word |= uint32(s.RegF-1) << 13
	}
	if s.Homing {
		word |= 1 << 20
	}
	switch {
	case s.PAC:
		word |= 2 << 21
	case s.FramePointer:
		word |= 3 << 21
	case s.Link:
		word |= 1 << 21
	}
	return word, true
}

// fieldsOf counts the registers that a prolog saves.
func fieldsOf(prolog []Op) (s ShapeARM64) {
	x30Saved := false
	for i := range prolog {
		for _, e := range prolog[i].Effects {
			switch {
			case e.Kind == Sign:
				s.PAC = true
			case e.Kind == StoreV:
				s.RegF++
			case e.Kind == Store && e.Reg < 8:
				s.Homing = true
			case e.Kind == Store && e.Reg == x29:
				s.FramePointer = true
			case e.Kind == Store && e.Reg == x30:
				x30Saved = true
			case e.Kind == Store:
				s.RegI++
			case e.Kind == Add && e.Reg == xsp && e.Base == xsp:
				s.FrameSize += uint32(-e.Imm)
			}
		}
	}
	s.Link = x30Saved && !s.FramePointer
	return s
}

func sameCode(a, b []Op) bool {
	return slices.EqualFunc(a, b, func(a, b Op) bool { return bytes.Equal(a.Code, b.Code) })
}
