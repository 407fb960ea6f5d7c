package cfi

import "github.com/seedwalk/seedwalk/context"

// maxQuickAlign bounds the code alignment factor of programs that quick reads, so that no distance of an
// instruction overflows.
const maxQuickAlign = 1 << 32

// quick executes the most common instructions up to the first other one, and returns their number. These are
// padding, and instructions with operands of one byte that advance the location, save a register, or change
// the CFA. Machine.instruction executes the others. It has the same effect at five times the cost.
// Machine.Rows does not use quick, so that tests can compare the two.
func (p *program) quick(row *Row) (n int) {
	code, loc, at, used := p.r.Rest(), p.loc, 0, row.Used[0]
	code = code[:min(len(code), MaxInstructions)]
	saves := columnsBelow64[p.arch&3]
loop:
	for ; at+1 < len(code); n++ {
		op, operand, size, delta := code[at], code[at+1], 2, uint64(0)
		switch {
		case op&0xc0 == DW_CFA_offset && operand < 0x80:
			if c := op & 0x3f; saves>>c&1 != 0 {
				row.Regs[c].offset(Offset, int64(operand)*p.c.dataAlign)
				used |= 1 << c
			}
			at += 2
			continue
		case op&0xc0 == DW_CFA_advance_loc:
			size, delta = 1, uint64(op&0x3f)
		case op == DW_CFA_def_cfa_offset && operand < 0x80 && row.CFA.Kind != Unspecified:
			row.CFA.Off = int64(operand)
		case op == DW_CFA_nop:
			size = 1
		case op == DW_CFA_advance_loc1:
			delta = uint64(operand)
		case op == DW_CFA_def_cfa_register && operand < 0x80 && row.CFA.Kind == RegisterOffset:
			row.CFA.Reg = uint16(operand)
		case op == DW_CFA_def_cfa && operand < 0x80 && at+2 < len(code) && code[at+2] < 0x80:
			row.CFA.offset(RegisterOffset, int64(code[at+2]))
			row.CFA.Reg, size = uint16(operand), 3
		default:
			break loop
		}
		if delta != 0 {
			to := loc + delta*p.c.codeAlign
			if to < loc {
				break loop
			}
			if to > p.target { // as moveTo does
				p.done, row.Hi = true, min(row.Hi, to)
				at += size
				n++
				break loop
			}
			loc = to
		}
		at += size
	}
	p.r.Skip(uint64(at))
	p.loc, row.Lo, row.Used[0] = loc, loc, used
	return n
}

// columnsBelow64 are the registers below 64 whose column equals their number, as bits, by architecture.
var columnsBelow64 = func() (of [4]uint64) {
	for _, a := range []context.Arch{context.ArchAMD64, context.ArchARM64} {
		for reg := range uint64(64) {
			if Column(a, reg) == int(reg) {
				of[a&3] |= 1 << reg
			}
		}
	}
	return of
}()
