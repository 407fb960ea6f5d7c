package cfi

import (
	"math/bits"
	"sort"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/buf"
)

// Bounds of a Machine. DWARF sets none. Compilers nest remember_state once or
// twice; a program of one function has as many instructions as its prologs and
// epilogs need, 13,361 in the largest one seen (of gcc's cc1plus). A program beyond
// these bounds is damaged, or made to keep the reader busy: every frame of a stack
// can be in such a function.
const (
	MaxRemember     = 16      // nested DW_CFA_remember_state
	maxSaved        = 256     // rules in all remembered states together
	MaxInstructions = 1 << 16 // of one CIE and FDE together
)

// Machine interprets call frame programs on storage of fixed size. The zero
// Machine is ready. It is not safe for concurrent use; keep one per walker.
type Machine struct {
	initial [Columns]Rule // the CIE's rules, for DW_CFA_restore
	initUse [2]uint64
	initCFA Rule
	initRA  bool
	last    *cie // the CIE of the initial rules, nil if none: most FDEs of an image share one
	saved   [maxSaved]savedRule
	nsaved  int
	states  [MaxRemember]state
	depth   int
	steps   int
	first   found // of a table that is not read yet
	omit    Omitter
}

// An Omitter decides which instructions of a call frame program are wrong and left out.
type Omitter interface {
	// Omits reports whether a DW_CFA_def_cfa_offset of off bytes at address pc of the image
	// is left out.
	Omits(pc uint64, off int64) bool
}

type savedRule struct {
	column uint8
	rule   Rule
}

// state is what DW_CFA_remember_state keeps besides the rules.
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
	target uint64 // stop before rules that begin above it: the rest is not read
	inCIE  bool
	fn     uint64
	done   bool
	omit   Omitter
	visit  func(*Row) bool // for Rows: called with every row as it ends
}

// Row fills row with the rules at pc. It allocates nothing and is bounded by
// MaxInstructions. On any reason but None the row has no rules; its FDE is set
// if one was found.
func (m *Machine) Row(t *Table, pc uint64, row *Row) Reason {
	row.reset()
	if !t.read.Load() {
		return m.rowFirst(t, pc, row)
	}
	i := t.search(pc)
	if i < 0 {
		return NoInfo
	}
	f := &t.fdes[i]
	c := &t.cies[f.cie]
	why := m.run(t.arch, t.sectionOf(c), f, c, pc, row)
	if why != None {
		row.reset()
	}
	t.public(i, &row.FDE)
	return why
}

// RowWithout is Row without the instructions that o omits.
func (m *Machine) RowWithout(o Omitter, t *Table, pc uint64, row *Row) Reason {
	m.omit = o
	why := m.Row(t, pc, row)
	m.omit = nil
	return why
}

// Rows calls fn with every row of f in order of Lo until fn returns false. The
// rows are disjoint and cover f. A row is valid only during its call. If the
// program is damaged, Rows returns the reason after the rows before the damage.
// It returns NoInfo if the table does not have f.
func (m *Machine) Rows(t *Table, f *FDE, row *Row, fn func(*Row) bool) Reason {
	row.reset()
	t.Complete()
	i := t.indexOf(f)
	if i < 0 {
		return NoInfo
	}
	in := &t.fdes[i]
	c := &t.cies[in.cie]
	p := program{arch: t.arch, sec: t.sectionOf(c), c: c}
	if why := m.start(&p, in, row); why != None {
		return why
	}
	row.FDE = *f
	p.target, p.visit = f.Hi-1, fn
	if why := m.execute(&p, row); why != None || p.done && row.Hi != f.Hi {
		return why
	}
	return p.emit(row, f.Hi)
}

// indexOf returns the index of an FDE, -1 if the table does not have it.
func (t *Table) indexOf(f *FDE) int {
	i := sort.Search(len(t.fdes), func(i int) bool { return t.fdes[i].lo >= f.Lo })
	for ; i < len(t.fdes) && t.fdes[i].lo == f.Lo; i++ {
		if in := &t.fdes[i]; uint64(in.off) == f.Offset && t.cies[in.cie].debug == f.DebugFrame {
			return i
		}
	}
	return -1
}

// sectionOf returns the section that contains a CIE and its FDEs.
func (t *Table) sectionOf(c *cie) *section {
	if c.debug {
		return &t.secs[1]
	}
	return &t.secs[0]
}

func (m *Machine) run(arch context.Arch, sec *section, f *fde, c *cie, pc uint64, row *Row) Reason {
	p := program{arch: arch, sec: sec, c: c}
	if why := m.start(&p, f, row); why != None {
		return why
	}
	p.target = pc
	why := m.execute(&p, row)
	if row.CFA.Kind == Unspecified && why == None {
		return BadRecord
	}
	if why == None && c.byGo(arch) {
		row.loseRegisters(arch)
	}
	return why
}

// start runs the program of p's CIE and makes p the program of its FDE f. Both
// read up to the end of their own record: a program without an end cannot run
// into the next record, and an operand that is cut makes the reader fail.
func (m *Machine) start(p *program, f *fde, row *Row) Reason {
	row.BKey = p.c.bkey
	if why := m.startCIE(p, row); why != None {
		return why
	}
	row.Lo, row.Hi = f.lo, f.hi
	p.r = buf.At(p.sec.data[:f.insEnd], uint64(f.insAt))
	p.loc, p.fn, p.omit = f.lo, f.lo, m.omit
	return None
}

// startCIE puts the CIE's rules into row. It runs the CIE's program only if the
// rules of the last one are another CIE's: they are kept for DW_CFA_restore
// anyway.
func (m *Machine) startCIE(p *program, row *Row) Reason {
	m.nsaved, m.depth, m.steps = 0, 0, 0
	if m.last == p.c {
		m.useInitial(row)
		return None
	}
	m.last = nil // if the program fails, the kept rules are no CIE's
	p.r, p.inCIE = buf.At(p.sec.data[:p.c.insEnd], p.c.insAt), true
	if why := m.execute(p, row); why != None {
		return why
	}
	p.inCIE = false
	m.keepInitial(row)
	if m.depth == 0 { // a CIE that remembers states must leave them to each of its FDEs
		m.last = p.c
	}
	return None
}

func (m *Machine) keepInitial(row *Row) {
	m.initCFA.assign(&row.CFA)
	m.initUse, m.initRA = row.Used, row.RASign
	for w := range row.Used {
		for u := row.Used[w]; u != 0; u &= u - 1 {
			c := w<<6 + bits.TrailingZeros64(u)
			m.initial[c].assign(&row.Regs[c])
		}
	}
}

func (m *Machine) useInitial(row *Row) {
	row.CFA.assign(&m.initCFA)
	row.Used, row.RASign = m.initUse, m.initRA
	for w := range row.Used {
		for u := row.Used[w]; u != 0; u &= u - 1 {
			c := w<<6 + bits.TrailingZeros64(u)
			row.Regs[c].assign(&m.initial[c])
		}
	}
}

// execute runs p until its end or until rules begin above p.target.
func (m *Machine) execute(p *program, row *Row) Reason {
	quick := p.visit == nil && p.omit == nil && !p.inCIE && p.c.codeAlign < maxQuickAlign
	for p.r.Len() > 0 && !p.done {
		if quick {
			if m.steps += p.quick(row); (p.done || p.r.Len() == 0) && m.steps <= MaxInstructions {
				return None
			}
		}
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

// advance moves the location by delta code alignment units.
func (p *program) advance(delta uint64, row *Row) Reason {
	high, bytes := bits.Mul64(delta, p.c.codeAlign)
	if high != 0 {
		return BadRecord
	}
	return p.moveTo(p.loc+bytes, row) // moveTo refuses a sum that wraps: it is below loc
}

// setLoc moves to an address, which is encoded as the FDE's own are.
func (p *program) setLoc(row *Row) Reason {
	b := bases{section: p.sec.addr, text: p.sec.text, data: p.sec.got, fn: p.fn,
		hasFn: !p.inCIE, size: p.c.addrSize}
	to, why := pointer(&p.r, p.c.fdeEnc, &b)
	if why != None {
		return why
	}
	return p.moveTo(to, row)
}

// moveTo ends the row at to, or the program if the row contains the target. Rows
// are in the order of addresses (DWARF 5 section 6.4.2.1): after a step back, the
// rules at an address would depend on how far a reader reads.
func (p *program) moveTo(to uint64, row *Row) Reason {
	if p.inCIE {
		return BadOpcode // initial rules have no location
	}
	if to < p.loc {
		return BadRecord
	}
	if to > p.target {
		// A location past the FDE's end is no error: the last row ends with the FDE.
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
	if p.c.byGo(p.arch) {
		row.loseRegisters(p.arch)
	}
	p.done = !p.visit(row)
	return None
}
