package amd64

import (
	"bytes"
	"slices"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/buf"
)

// maxSide is how many side rules an unwinder stores. When they are used up, the cache is emptied and they
// restart. Real stacks need a handful.
const maxSide = 128

// side is a rule that does not fit Rule's bits: signal frames, expressions, realigned stacks, registers saved
// far away.
type side struct {
	lo, hi uint64 // look-up addresses of its row
	module int32
	bias   uint64 // of the module
	signal bool
	cfa    cfi.Rule
	ra     cfi.Rule
	regs   [16]cfi.Rule // DWARF numbering
}

func (s *side) fill(row *cfi.Row, module int, bias uint64) {
	s.lo, s.hi, s.module, s.bias = row.Lo+bias, row.Hi+bias, int32(module), bias
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

// savedAt is a kind that occurs in side rules only: the value, or the CFA, is the word at register Reg + Off.
// Equivalent expressions are converted once, instead of being interpreted at each step: those of all sixteen
// registers and the CFA of a signal frame.
const savedAt cfi.Kind = 0x80

// lowered converts a rule to savedAt, if its expression is one register plus a distance followed by exactly
// the operations in behind; otherwise it returns the rule unchanged.
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

// same reports whether two side rules are of one row and have the same corrections (see quirks.go).
func (s *side) same(o *side) bool {
	like := func(a, b cfi.Rule) bool { return a.Kind == b.Kind && a.Reg == b.Reg && a.Off == b.Off }
	return s.lo == o.lo && s.hi == o.hi && s.module == o.module &&
		like(s.cfa, o.cfa) && like(s.ra, o.ra) && slices.EqualFunc(s.regs[:], o.regs[:], like)
}

// addSide stores a row as a side rule and returns its number. Addresses of a row share it if it is the same.
func (u *Unwinder) addSide(row *cfi.Row, module int, bias uint64) int {
	if u.nside == maxSide {
		u.flush()
	}
	s := &u.sides[u.nside]
	s.fill(row, module, bias)
	if i := slices.IndexFunc(u.sides[:u.nside], func(o side) bool { return s.same(&o) }); i >= 0 {
		return i
	}
	u.nside++
	return u.nside - 1
}
