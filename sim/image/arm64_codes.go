package image

import "errors"

// Unwind codes from the effects of instructions.

var errNoCode = errors.New("an instruction no unwind code stands for")

// actARM64 is an instruction of a prolog, or the instruction of an epilog that undoes it.
type actARM64 struct {
	regs   []Reg // nonvolatile, x30 included: one, or two in a row of memory
	vector bool
	at     int64 // of the first, from SP below the instruction's own change of it
	moved  int64 // bytes SP goes down by
	fp     bool
	fpAt   int64
	sign   bool
}

// actOf reads an op's effects.
func actOf(op *Op) (a actARM64) {
	low := int64(0)
	for i, e := range op.Effects {
		switch {
		case e.Kind == Sign || e.Kind == Auth:
			a.sign = true
		case e.Kind == Add && e.Reg == xsp && e.Base == xsp:
			a.moved = max(e.Imm, -e.Imm)
			low = min(e.Imm, 0)
		case e.Kind == Add && e.Reg == x29 && e.Base == xsp:
			a.fp, a.fpAt = true, e.Imm
		case e.Kind == Add && e.Reg == xsp && e.Base == x29:
			a.fp, a.fpAt = true, -e.Imm
		case e.Kind == Store || e.Kind == Load || e.Kind == StoreV || e.Kind == LoadV:
			if i == 0 {
				a.at = e.Imm
			}
			a.vector = e.Kind == StoreV || e.Kind == LoadV
			if a.vector || e.Reg >= x19 {
				a.regs = append(a.regs, e.Reg)
			}
		}
	}
	a.at -= low
	return a
}

// code encodes the act.
func (a *actARM64) code() ([]byte, error) {
	switch {
	case a.sign:
		return []byte{0xfc}, nil
	case a.fp && a.fpAt == 0:
		return []byte{0xe1}, nil
	case a.fp:
		return one(0xe2, 8, a.fpAt, 0)
	case len(a.regs) == 0 && a.moved != 0:
		return allocCode(a.moved)
	case len(a.regs) == 0:
		return []byte{codeNop}, nil
	case a.moved != 0 && a.at == 0:
		return a.preCode()
	case a.moved == 0:
		return a.offsetCode()
	}
	return nil, errNoCode
}

// one returns a first byte, and n/unit-less in a second byte. It returns an error if that does not fit.
func one(first byte, unit, n, less int64) ([]byte, error) {
	if v := n/unit - less; n%unit == 0 && v >= 0 && v < 256 {
		return []byte{first, byte(v)}, nil
	}
	return nil, errNoCode
}

// two is a 16-bit code with n/8-less in its low bits.
func two(code uint32, bits int, n, less int64) ([]byte, error) {
	if v := n/8 - less; n%8 == 0 && v >= 0 && v < 1<<bits {
		code |= uint32(v)
		return []byte{byte(code >> 8), byte(code)}, nil
	}
	return nil, errNoCode
}

// low is a byte with n/8-less in its low bits.
func low(code byte, bits int, n, less int64) ([]byte, error) {
	if v := n/8 - less; n%8 == 0 && v >= 0 && v < 1<<bits {
		return []byte{code | byte(v)}, nil
	}
	return nil, errNoCode
}

// allocCode is alloc_s, alloc_m or alloc_l.
func allocCode(n int64) ([]byte, error) {
	u := n / 16
	switch {
	case n%16 != 0 || u >= 1<<24:
		return nil, errNoCode
	case u < 1<<5:
		return []byte{byte(u)}, nil
	case u < 1<<11:
		return []byte{0xc0 | byte(u>>8), byte(u)}, nil
	}
	return []byte{0xe0, byte(u >> 16), byte(u >> 8), byte(u)}, nil
}

// preCode encodes saves that move SP.
func (a *actARM64) preCode() ([]byte, error) {
	r, n := uint32(a.regs[0]), a.moved
	pair := len(a.regs) == 2
	if pair && a.regs[1] != a.regs[0]+1 {
		return nil, errNoCode
	}
	switch {
	case a.vector && pair:
		return two(0xda00|(r-8)<<6, 6, n, 1) // save_fregp_x
	case a.vector:
		return two(0xde00|(r-8)<<5, 5, n, 1) // save_freg_x
	case pair && r == 29:
		return low(0x80, 6, n, 1) // save_fplr_x
	case pair && r == 19 && n <= 248:
		return low(0x20, 5, n, 0) // save_r19r20_x
	case pair:
		return two(0xcc00|(r-19)<<6, 6, n, 1) // save_regp_x
	}
	return two(0xd400|(r-19)<<5, 5, n, 1) // save_reg_x
}

// offsetCode encodes saves that do not move SP.
func (a *actARM64) offsetCode() ([]byte, error) {
	r, n := uint32(a.regs[0]), a.at
	pair := len(a.regs) == 2
	next := pair && a.regs[1] == a.regs[0]+1
	switch {
	case a.vector && next:
		return two(0xd800|(r-8)<<6, 6, n, 0) // save_fregp
	case a.vector && !pair:
		return two(0xdc00|(r-8)<<6, 6, n, 0) // save_freg
	case a.vector:
		return nil, errNoCode
	case next && r == 29:
		return low(0x40, 6, n, 0) // save_fplr
	case next:
		return two(0xc800|(r-19)<<6, 6, n, 0) // save_regp
	case pair && a.regs[1] == x30 && (r-19)%2 == 0:
		return two(0xd600|(r-19)/2<<6, 6, n, 0) // save_lrpair
	case pair:
		return nil, errNoCode
	}
	return two(0xd000|(r-19)<<6, 6, n, 0) // save_reg
}

// follows reports whether save_next can encode a: a must store the next pair of registers, directly
// above the pair of before.
func (a *actARM64) follows(before *actARM64) bool {
	return len(a.regs) == 2 && len(before.regs) == 2 && a.vector == before.vector && a.moved == 0 &&
		a.regs[0] == before.regs[1]+1 && a.regs[1] == a.regs[0]+1 && before.regs[1] == before.regs[0]+1 &&
		(a.vector || a.regs[1] < x29) && a.at == before.at+16
}

// undoCodes encodes ops in the order of an epilog.
func undoCodes(ops []Op, next bool) ([][]byte, error) {
	var codes [][]byte
	for i := range ops {
		a := actOf(&ops[i])
		if next && i+1 < len(ops) {
			if below := actOf(&ops[i+1]); a.follows(&below) {
				codes = append(codes, []byte{codeSaveNext})
				continue
			}
		}
		c, err := a.code()
		if err != nil {
			return nil, err
		}
		codes = append(codes, c)
	}
	return codes, nil
}

// reversed encodes a prolog's ops, the last one first.
func reversed(ops []Op, next bool) ([][]byte, error) {
	back := make([]Op, len(ops))
	for i := range ops {
		back[len(ops)-1-i] = ops[i]
	}
	return undoCodes(back, next)
}
