package cfi

import (
	"math/bits"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/buf"
)

// Bounds of a Machine.
const (
	MaxRemember     = 16      // nested DW_CFA_remember_state
	maxSaved        = 256     // rules in all remembered states together
	MaxInstructions = 1 << 18 // of one CIE and FDE together
)

// Machine interprets call frame programs on storage of fixed size. The zero
// Machine is ready. It is not safe for concurrent use; keep one per walker.
type Machine struct {
	initial [Columns]Rule // the CIE's rules, for DW_CFA_restore
	initUse [2]uint64
	initCFA Rule
	initRA  bool
	last    *cie // whose rules those are: most FDEs share one CIE
	saved   [maxSaved]savedRule
	nsaved  int
	states  [MaxRemember]state
	depth   int
	steps   int
}

type savedRule struct {
	column uint8
	rule   Rule
}

// state is what DW_CFA_remember_state keeps beside the rules.
type state struct {
	cfa    Rule
	raSign bool
	first  int // of its rules in Machine.saved
}

// program is one run of instructions.
type program struct {
	c      *cie
	arch   context.Arch
	sec    *section
	r      buf.Reader
	loc    uint64 // address the rules hold from
	target uint64 // stop before rules that begin above it
	inCIE  bool
	fn     uint64
	done   bool
	visit  func(*Row) bool // for Rows: called with every row as it ends
}

// Row fills row with the rules at pc. It allocates nothing and is bounded by
// MaxInstructions. On any reason but None the row has no rules; its FDE is set
// if one was found.
func (m *Machine) Row(t *Table, pc uint64, row *Row) Reason {
	row.reset()
	i := t.search(pc)
	if i < 0 {
		return NoInfo
	}
	why := m.run(t, i, pc, row)
	if why != None {
		row.reset()
	}
	row.FDE = t.public(i)
	return why
}

// At is Row for an FDE already found, and a pc inside it.
func (m *Machine) At(t *Table, f *FDE, pc uint64, row *Row) Reason {
	row.reset()
	if int(f.index) >= len(t.fdes) || pc < f.Lo || pc >= f.Hi {
		return NoInfo
	}
	why := m.run(t, int(f.index), pc, row)
	if why != None {
		row.reset()
	}
	row.FDE = *f
	return why
}

// Rows calls fn with every row of f in order of Lo until fn answers false. The
// rows are disjoint and cover f. A row is valid only during its call. On a
// damaged program the rows before the damage have been given.
func (m *Machine) Rows(t *Table, f *FDE, row *Row, fn func(*Row) bool) Reason {
	row.reset()
	if int(f.index) >= len(t.fdes) {
		return NoInfo
	}
	p, why := m.start(t, int(f.index), row)
	if why != None {
		return why
	}
	row.FDE = *f
	p.target, p.visit = f.Hi-1, fn
	if why = m.execute(&p, row); why != None || p.done && row.Hi != f.Hi {
		return why
	}
	return p.emit(row, f.Hi)
}

func (m *Machine) run(t *Table, i int, pc uint64, row *Row) Reason {
	p, why := m.start(t, i, row)
	if why != None {
		return why
	}
	p.target = pc
	why = m.execute(&p, row)
	if row.CFA.Kind == Unspecified && why == None {
		return BadRecord
	}
	return why
}

// start runs the CIE's program of FDE i and returns the FDE's own.
func (m *Machine) start(t *Table, i int, row *Row) (program, Reason) {
	f := &t.fdes[i]
	c := &t.cies[f.cie]
	sec := &t.secs[0]
	if c.debug {
		sec = &t.secs[1]
	}
	row.BKey = c.bkey
	p := program{c: c, arch: t.arch, sec: sec}
	if why := m.startCIE(&p, row); why != None {
		return p, why
	}
	row.Lo, row.Hi = f.lo, f.hi
	p.r = buf.At(sec.data[:f.insEnd], uint64(f.insAt))
	p.loc, p.fn = f.lo, f.lo
	return p, None
}

// startCIE puts the CIE's rules into row, running its program only if the
// machine ran another's before.
func (m *Machine) startCIE(p *program, row *Row) Reason {
	m.nsaved, m.depth, m.steps = 0, 0, 0
	if m.last == p.c {
		m.useInitial(row)
		return None
	}
	m.last = nil
	p.r, p.inCIE = buf.At(p.sec.data[:p.c.insEnd], p.c.insAt), true
	if why := m.execute(p, row); why != None {
		return why
	}
	p.inCIE = false
	m.keepInitial(row)
	if m.depth == 0 { // states remembered by a CIE are not kept
		m.last = p.c
	}
	return None
}

func (m *Machine) keepInitial(row *Row) {
	m.initUse, m.initCFA, m.initRA = row.Used, row.CFA, row.RASign
	for w := range row.Used {
		for u := row.Used[w]; u != 0; u &= u - 1 {
			c := w<<6 + bits.TrailingZeros64(u)
			m.initial[c] = row.Regs[c]
		}
	}
}

func (m *Machine) useInitial(row *Row) {
	row.Used, row.CFA, row.RASign = m.initUse, m.initCFA, m.initRA
	for w := range row.Used {
		for u := row.Used[w]; u != 0; u &= u - 1 {
			c := w<<6 + bits.TrailingZeros64(u)
			row.Regs[c] = m.initial[c]
		}
	}
}

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

// execute runs p until its end or until rules begin above p.target.
func (m *Machine) execute(p *program, row *Row) Reason {
	for p.r.Len() > 0 && !p.done {
		if m.steps++; m.steps > MaxInstructions {
			return TooManySteps
		}
		why := m.instruction(p, row)
		if !p.r.OK() {
			return Truncated
		}
		if why != None {
			return why
		}
	}
	return None
}

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
	case DW_CFA_def_cfa, DW_CFA_def_cfa_sf, DW_CFA_def_cfa_register, DW_CFA_def_cfa_offset, DW_CFA_def_cfa_offset_sf, DW_CFA_def_cfa_expression:
		return p.defCFA(op, row)
	case DW_CFA_AARCH64_negate_ra_state, DW_CFA_AARCH64_negate_ra_state_pc:
		if p.arch != context.ArchARM64 {
			return BadOpcode
		}
		row.RASign = !row.RASign
		return None
	case DW_CFA_AARCH64_set_ra_state:
		if p.arch == context.ArchARM64 {
			return Unsupported
		}
		return BadOpcode
	case DW_CFA_GNU_args_size:
		p.r.ULEB()
		return None
	}
	return m.register(p, op, row)
}

// register runs the opcodes whose first operand is a register.
func (m *Machine) register(p *program, op uint8, row *Row) Reason {
	switch op {
	case DW_CFA_offset_extended, DW_CFA_offset_extended_sf, DW_CFA_val_offset, DW_CFA_val_offset_sf, DW_CFA_GNU_negative_offset_ext,
		DW_CFA_restore_extended, DW_CFA_undefined, DW_CFA_same_value, DW_CFA_register, DW_CFA_expression, DW_CFA_val_expression:
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

// number narrows a register number; what does not fit is no register of any
// column and stays so.
func (p *program) number(reg uint64) uint16 {
	if reg > 0xffff {
		return 0xffff
	}
	return uint16(reg)
}

// put sets a rule. A register without a column (segment registers, x87) is
// read and dropped.
func (p *program) put(row *Row, reg uint64, rule Rule) Reason {
	if c := Column(p.arch, reg); c >= 0 && p.r.OK() {
		row.set(c, rule)
	}
	return None
}

func (p *program) offset(row *Row, reg uint64, kind Kind, factored int64) Reason {
	return p.put(row, reg, Rule{Kind: kind, Off: factored * p.c.dataAlign})
}

// advance moves the location by delta code alignment units.
func (p *program) advance(delta uint64, row *Row) Reason {
	high, bytes := bits.Mul64(delta, p.c.codeAlign)
	if high != 0 {
		return BadRecord
	}
	return p.moveTo(p.loc+bytes, row)
}

func (p *program) setLoc(row *Row) Reason {
	b := bases{section: p.sec.addr, text: p.sec.text, data: p.sec.got, fn: p.fn, hasFn: !p.inCIE, size: p.c.addrSize}
	to, why := pointer(&p.r, p.c.fdeEnc, &b)
	if why != None {
		return why
	}
	return p.moveTo(to, row)
}

// moveTo ends the row at to, or the program if the row holds the target.
func (p *program) moveTo(to uint64, row *Row) Reason {
	if p.inCIE {
		return BadOpcode // initial rules have no location
	}
	if to < p.loc {
		return BadRecord
	}
	if to > p.target {
		p.done = true
		row.Hi = min(row.Hi, to)
		return None
	}
	if p.visit != nil && to > p.loc {
		hi := row.Hi
		if why := p.emit(row, to); why != None || p.done {
			return why
		}
		row.Hi = hi
	}
	p.loc, row.Lo = to, to
	return None
}

// emit passes the row that ends at hi to the visitor.
func (p *program) emit(row *Row, hi uint64) Reason {
	if row.CFA.Kind == Unspecified {
		return BadRecord
	}
	row.Hi = hi
	p.done = !p.visit(row)
	return None
}

// defCFA runs the opcodes that say what the CFA is. DWARF 5 has def_cfa_register
// and def_cfa_offset invalid behind an expression. Compilers and assemblers
// write them all the same (libgcrypt's SHA-512 leaves its frame so), and what
// unwinds real exceptions, libgcc, agrees with gdb and LLVM's libunwind on what
// they mean: register and offset stay what they were beneath the expression, a
// register takes its place, an offset alone does not.
func (p *program) defCFA(op uint8, row *Row) Reason {
	if op == DW_CFA_def_cfa_expression {
		row.CFA.Kind, row.CFA.Expr = Expression, p.r.Bytes(p.r.ULEB())
		return None
	}
	if op == DW_CFA_def_cfa || op == DW_CFA_def_cfa_sf {
		reg := p.number(p.r.ULEB())
		row.CFA = Rule{Kind: RegisterOffset, Reg: reg}
		op += DW_CFA_def_cfa_offset - DW_CFA_def_cfa
		if op != DW_CFA_def_cfa_offset {
			op = DW_CFA_def_cfa_offset_sf
		}
	}
	if row.CFA.Kind == Unspecified {
		return BadOpcode // nothing to change a part of
	}
	switch op {
	case DW_CFA_def_cfa_register:
		row.CFA = Rule{Kind: RegisterOffset, Reg: p.number(p.r.ULEB()), Off: row.CFA.Off}
	case DW_CFA_def_cfa_offset:
		row.CFA.Off = int64(p.r.ULEB())
	case DW_CFA_def_cfa_offset_sf:
		row.CFA.Off = p.r.SLEB() * p.c.dataAlign
	}
	return None
}

// restore returns a register to the CIE's rule.
func (m *Machine) restore(p *program, row *Row, reg uint64) Reason {
	if p.inCIE {
		return BadOpcode
	}
	c := Column(p.arch, reg)
	if c < 0 || !p.r.OK() {
		return None
	}
	if m.initUse[c>>6]>>(c&63)&1 != 0 {
		row.set(c, m.initial[c])
	} else {
		row.clear(c)
	}
	return None
}

// remember pushes all rules, the CFA's and the RA sign state.
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
			m.saved[m.nsaved] = savedRule{uint8(c), row.Regs[c]}
			m.nsaved++
		}
	}
	return None
}

func (m *Machine) restoreState(row *Row) Reason {
	if m.depth == 0 {
		return BadOpcode
	}
	m.depth--
	s := &m.states[m.depth]
	row.clearRegs()
	for _, r := range m.saved[s.first:m.nsaved] {
		row.set(int(r.column), r.rule)
	}
	m.nsaved = s.first
	row.CFA, row.RASign = s.cfa, s.raSign
	return None
}
