package amd64

import (
	"bytes"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/buf"
)

// maxSide is how many side rules an unwinder keeps; when they are used up the
// cache is emptied and they start anew. Real stacks need a handful.
const maxSide = 128

// side is a rule that does not fit Rule's bits: signal frames, expressions,
// realigned stacks, registers saved far away.
type side struct {
	lo, hi uint64 // look-up addresses it holds for
	module int32
	signal bool
	cfa    cfi.Rule
	ra     cfi.Rule
	regs   [16]cfi.Rule // DWARF numbering
}

func (s *side) fill(row *cfi.Row, module int, lo, hi uint64) {
	s.lo, s.hi, s.module = lo, hi, int32(module)
	s.signal = row.FDE.Signal
	s.cfa = row.CFA
	s.ra = row.Rule(context.ArchAMD64, row.FDE.RA)
	copy(s.regs[:], row.Regs[:16])
	s.cfa.Kind, s.cfa.Reg, s.cfa.Off = lowered(&s.cfa, cfi.DW_OP_deref)
	s.ra.Kind, s.ra.Reg, s.ra.Off = lowered(&s.ra)
	for i := range s.regs {
		r := &s.regs[i]
		r.Kind, r.Reg, r.Off = lowered(r)
	}
}

// savedAt is a kind of a side's rules only: the value, or the CFA, is the word at
// register Reg + Off. Expressions that say no more become it once, where they would be
// interpreted at each step: all sixteen registers' of a signal frame, and its CFA's.
const savedAt cfi.Kind = 0x80

// lowered is a rule as savedAt, if its expression is one register and a distance
// before the operations behind, else as it is.
func lowered(r *cfi.Rule, behind ...byte) (cfi.Kind, uint16, int64) {
	if r.Kind == cfi.Expression {
		in := buf.At(r.Expr, 0)
		reg := uint16(in.U8()) - cfi.DW_OP_breg0
		off := in.SLEB()
		if in.OK() && reg <= dwarfRA && bytes.Equal(in.Rest(), behind) {
			return savedAt, reg, off
		}
	}
	return r.Kind, r.Reg, r.Off
}

// addSide keeps a row as a side rule and returns its number.
func (u *Unwinder) addSide(row *cfi.Row, module int, bias uint64) int {
	lo, hi := row.Lo+bias, row.Hi+bias
	for i := range u.sides[:u.nside] {
		if s := &u.sides[i]; s.lo == lo && s.hi == hi && s.module == int32(module) {
			return i
		}
	}
	if u.nside == maxSide {
		u.flush()
	}
	u.sides[u.nside].fill(row, module, lo, hi)
	u.nside++
	return u.nside - 1
}
