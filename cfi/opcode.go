package cfi

import (
	"math/bits"

	"github.com/seedwalk/seedwalk/context"
)

// Opcodes (DWARF 5 table 7.29; LSB; "DWARF for the Arm 64-bit Architecture").
const (
	DW_CFA_advance_loc                = 0x40
	DW_CFA_offset                     = 0x80
	DW_CFA_restore                    = 0xc0
	DW_CFA_nop                        = 0x00
	DW_CFA_set_loc                    = 0x01
	DW_CFA_advance_loc1               = 0x02
	DW_CFA_advance_loc2               = 0x03
	DW_CFA_advance_loc4               = 0x04
	DW_CFA_offset_extended            = 0x05
	DW_CFA_restore_extended           = 0x06
	DW_CFA_undefined                  = 0x07
	DW_CFA_same_value                 = 0x08
	DW_CFA_register                   = 0x09
	DW_CFA_remember_state             = 0x0a
	DW_CFA_restore_state              = 0x0b
	DW_CFA_def_cfa                    = 0x0c
	DW_CFA_def_cfa_register           = 0x0d
	DW_CFA_def_cfa_offset             = 0x0e
	DW_CFA_def_cfa_expression         = 0x0f
	DW_CFA_expression                 = 0x10
	DW_CFA_offset_extended_sf         = 0x11
	DW_CFA_def_cfa_sf                 = 0x12
	DW_CFA_def_cfa_offset_sf          = 0x13
	DW_CFA_val_offset                 = 0x14
	DW_CFA_val_offset_sf              = 0x15
	DW_CFA_val_expression             = 0x16
	DW_CFA_MIPS_advance_loc8          = 0x1d
	DW_CFA_AARCH64_set_ra_state       = 0x2b
	DW_CFA_AARCH64_negate_ra_state_pc = 0x2c
	DW_CFA_AARCH64_negate_ra_state    = 0x2d // on SPARC: GNU_window_save
	DW_CFA_GNU_args_size              = 0x2e
	DW_CFA_GNU_negative_offset_ext    = 0x2f
)

// instruction executes one instruction: its effect on row, on the location, or on remembered states. An
// unknown opcode ends the program, since the length of its operands is unknown too.
func (m *Machine) instruction(p *program, row *Row) Reason {
	op := p.r.U8()
	low := uint64(op & 0x3f)
	switch op & 0xc0 {
	case DW_CFA_advance_loc:
		return p.advance(low, row)
	case DW_CFA_offset:
		return p.offset(row, low, Offset, int64(p.r.ULEB()))
	case DW_CFA_restore:
		return m.restore(p, row, low)
	}
	switch op {
	case DW_CFA_nop:
		return None
	case DW_CFA_set_loc:
		return p.setLoc(row)
	case DW_CFA_advance_loc1:
		return p.advance(uint64(p.r.U8()), row)
	case DW_CFA_advance_loc2:
		return p.advance(uint64(p.r.U16()), row)
	case DW_CFA_advance_loc4:
		return p.advance(uint64(p.r.U32()), row)
	case DW_CFA_MIPS_advance_loc8:
		return p.advance(p.r.U64(), row)
	case DW_CFA_remember_state:
		return m.remember(row)
	case DW_CFA_restore_state:
		return m.restoreState(row)
	case DW_CFA_def_cfa, DW_CFA_def_cfa_sf, DW_CFA_def_cfa_register, DW_CFA_def_cfa_offset,
		DW_CFA_def_cfa_offset_sf, DW_CFA_def_cfa_expression:
		return p.defCFA(op, row)
	case DW_CFA_AARCH64_negate_ra_state, DW_CFA_AARCH64_negate_ra_state_pc:
		if p.arch != context.ArchARM64 {
			return BadOpcode
		}
		// On other architectures the opcode has another meaning (SPARC: register windows).
		row.RASign = !row.RASign
		return None
	case DW_CFA_AARCH64_set_ra_state:
		if p.arch != context.ArchARM64 {
			return BadOpcode
		}
		row.RASign = p.r.ULEB() != 0
		p.r.SLEB() // the distance to the instruction that signs
		return None
	case DW_CFA_GNU_args_size: // bytes that a landing pad removes from the stack; restores no register
		p.r.ULEB()
		return None
	}
	return m.register(p, op, row)
}

// register executes the opcodes whose first operand is a register. It checks the opcode before it reads the
// operand: an unknown opcode must be reported as unknown and not as truncated.
func (m *Machine) register(p *program, op uint8, row *Row) Reason {
	switch op {
	case DW_CFA_offset_extended, DW_CFA_offset_extended_sf, DW_CFA_val_offset, DW_CFA_val_offset_sf,
		DW_CFA_GNU_negative_offset_ext,
		DW_CFA_restore_extended, DW_CFA_undefined, DW_CFA_same_value, DW_CFA_register,
		DW_CFA_expression, DW_CFA_val_expression:
	default:
		return BadOpcode
	}
	reg := p.r.ULEB()
	switch op {
	case DW_CFA_offset_extended:
		return p.offset(row, reg, Offset, int64(p.r.ULEB()))
	case DW_CFA_offset_extended_sf:
		return p.offset(row, reg, Offset, p.r.SLEB())
	case DW_CFA_GNU_negative_offset_ext:
		return p.offset(row, reg, Offset, -int64(p.r.ULEB()))
	case DW_CFA_val_offset:
		return p.offset(row, reg, ValOffset, int64(p.r.ULEB()))
	case DW_CFA_val_offset_sf:
		return p.offset(row, reg, ValOffset, p.r.SLEB())
	case DW_CFA_restore_extended:
		return m.restore(p, row, reg)
	case DW_CFA_undefined:
		return p.put(row, reg, Rule{Kind: Undefined})
	case DW_CFA_same_value:
		return p.put(row, reg, Rule{Kind: SameValue})
	case DW_CFA_register:
		return p.put(row, reg, Rule{Kind: Register, Reg: p.number(p.r.ULEB())})
	case DW_CFA_expression:
		return p.put(row, reg, Rule{Kind: Expression, Expr: p.r.Bytes(p.r.ULEB())})
	}
	return p.put(row, reg, Rule{Kind: ValExpression, Expr: p.r.Bytes(p.r.ULEB())})
}

// number narrows a register number. One that does not fit becomes 0xffff, which has no column either.
func (p *program) number(reg uint64) uint16 {
	if reg > 0xffff {
		return 0xffff
	}
	return uint16(reg)
}

// put sets a rule. A register without a column (segment registers, x87) is read and dropped.
func (p *program) put(row *Row, reg uint64, rule Rule) Reason {
	if c := Column(p.arch, reg); c >= 0 && p.r.OK() {
		row.use(c).assign(&rule)
	}
	return None
}

// offset sets a rule whose operand counts in data alignment units. The product may wrap: reads are checked
// anyway. offset does the same as put for the most common rules, without copies.
func (p *program) offset(row *Row, reg uint64, kind Kind, factored int64) Reason {
	if c := Column(p.arch, reg); c >= 0 && p.r.OK() {
		row.use(c).offset(kind, factored*p.c.dataAlign)
	}
	return None
}

// defCFA executes the opcodes that define the CFA. In DWARF 5, def_cfa_register and def_cfa_offset are
// invalid after an expression, but compilers and assemblers write them (libgcrypt's SHA-512 leaves its frame
// so). libgcc, gdb, and LLVM's libunwind agree on the meaning: register and offset under the expression are
// kept, a new register replaces the expression, a new offset alone does not.
func (p *program) defCFA(op uint8, row *Row) Reason {
	if op == DW_CFA_def_cfa_expression {
		row.CFA.Kind, row.CFA.Expr = Expression, p.r.Bytes(p.r.ULEB())
		return None
	}
	if op == DW_CFA_def_cfa || op == DW_CFA_def_cfa_sf {
		reg := p.number(p.r.ULEB())
		row.CFA.offset(RegisterOffset, 0)
		row.CFA.Reg = reg
		op += DW_CFA_def_cfa_offset - DW_CFA_def_cfa
		if op != DW_CFA_def_cfa_offset {
			op = DW_CFA_def_cfa_offset_sf
		}
	}
	if row.CFA.Kind == Unspecified {
		return BadOpcode // there is nothing to change
	}
	switch op {
	case DW_CFA_def_cfa_register:
		row.CFA.offset(RegisterOffset, row.CFA.Off)
		row.CFA.Reg = p.number(p.r.ULEB())
	case DW_CFA_def_cfa_offset:
		if off := int64(p.r.ULEB()); p.omit == nil || !p.omit.Omits(p.loc, off) {
			row.CFA.Off = off
		}
	case DW_CFA_def_cfa_offset_sf:
		row.CFA.Off = p.r.SLEB() * p.c.dataAlign
	}
	return None
}

// restore sets a register to the CIE's rule: the one after the initial instructions, whatever the FDE has
// remembered since (DWARF 5 section 6.4.2.3). A CIE itself has no remembered state yet.
func (m *Machine) restore(p *program, row *Row, reg uint64) Reason {
	if p.inCIE {
		return BadOpcode
	}
	c := Column(p.arch, reg)
	if c < 0 || !p.r.OK() {
		return None
	}
	if m.initUse[c>>6]>>(c&63)&1 != 0 {
		row.use(c).assign(&m.initial[c])
	} else {
		row.clear(c)
	}
	return None
}

// remember pushes all rules, the CFA's, and the RA sign state. DWARF asks for "the set of rules for every
// register"; compilers, libgcc, and LLVM's libunwind include the CFA's rule. Programs with an epilog in the
// middle of a function rely on that. Only rules in use are pushed: a function with five saved registers
// costs five.
func (m *Machine) remember(row *Row) Reason {
	n := bits.OnesCount64(row.Used[0]) + bits.OnesCount64(row.Used[1])
	if m.depth == MaxRemember || m.nsaved+n > maxSaved {
		return TooDeep
	}
	m.states[m.depth] = state{row.CFA, row.RASign, m.nsaved}
	m.depth++
	for w := range row.Used {
		for u := row.Used[w]; u != 0; u &= u - 1 {
			c := w<<6 + bits.TrailingZeros64(u)
			m.saved[m.nsaved].column = uint8(c)
			m.saved[m.nsaved].rule.assign(&row.Regs[c])
			m.nsaved++
		}
	}
	return None
}

// restoreState pops what remember pushed. A register whose rule was set since then has none again, unless
// remember pushed one.
func (m *Machine) restoreState(row *Row) Reason {
	if m.depth == 0 {
		return BadOpcode
	}
	m.depth--
	s := &m.states[m.depth]
	row.clearRegs()
	for i := range m.saved[s.first:m.nsaved] {
		r := &m.saved[s.first+i]
		row.use(int(r.column)).assign(&r.rule)
	}
	m.nsaved = s.first
	row.CFA, row.RASign = s.cfa, s.raSign
	return None
}
