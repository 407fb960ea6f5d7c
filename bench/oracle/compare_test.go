package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// class names what is left out of the comparison, and why that is right.
type class string

const (
	// libdw begins a row where it last moved to, and DW_CFA_restore_state puts
	// the begin of the remembered row back with its rules. Left out only if the
	// begin is that of an earlier row of the same FDE; where a row begins is
	// still compared, by the end of the row before.
	restoredStart class = "row begins where a remembered one did"

	// Opcode 0x2d means something else to every machine but AArch64: an FDE that
	// signs return addresses is shown to libdw as AArch64 only.
	signedRA class = "row of an FDE that signs, as another machine"

	// Two FDEs cover the row: libdw finds one, we the other.
	otherFDE class = "row of an FDE that another one hides"

	// Rows of ours keep no x87, segment or control registers (AMD64) and no SVE
	// ones (ARM64): libdw has a rule for one of those.
	noColumn class = "rule of a register that rows do not keep"

	// An expression of no operations leaves the CFA, which was pushed first, as
	// the address; libdw answers "undefined" for a block of no bytes.
	emptyExpr class = "expression without operations"
)

// view is libdw looking at a file as one of its machines.
//
// libdw adds the rules of a CIE to a default row, which depends on the machine in the ELF
// header. Its answer does not show whether a rule is explicit. (The default row of x86-64 is
// wrong in 0.188: it has rax instead of rbx.) So the test asks libdw three times, for machines
// whose default rows differ in every register that we keep. An explicit rule differs from the
// default row of at least one of them.
//
// view is one of these questions.
type view struct {
	name     string
	machine  int // e_machine; -1: the machine of the file
	own      bool
	defaults [registers]rule
}

// tally counts a comparison: FDEs and rows once, all else in every view.
type tally struct {
	fdes, rows    int
	answers       int // of libdw, one per row and view
	rules, agreed int // explicit rules, CFAs included
	silent        int // registers of a row without a rule: libdw's default too
	left          map[class]int
	wrong         []string // the first of them
	wrongs        int
}

func newTally() *tally { return &tally{left: map[class]int{}} }

func (c *tally) fail(format string, args ...any) {
	if c.wrongs++; c.wrongs <= 5 {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

func (c *tally) add(o *tally) {
	c.fdes += o.fdes
	c.rows += o.rows
	c.answers += o.answers
	c.rules += o.rules
	c.agreed += o.agreed
	c.silent += o.silent
	c.wrongs += o.wrongs
	c.wrong = append(c.wrong, o.wrong...)
	for k, n := range o.left {
		c.left[k] += n
	}
}

func (c *tally) String() string {
	s := fmt.Sprintf("%d FDEs, %d rows; in 3 views %d answers, %d rules, %d agree; %d registers without a rule", c.fdes, c.rows, c.answers, c.rules, c.agreed, c.silent)
	var left []string
	for k, n := range c.left {
		left = append(left, fmt.Sprintf("; left out: %d %s", n, k))
	}
	slices.Sort(left)
	return s + strings.Join(left, "")
}

// convert writes a rule of ours as one of libdw's.
func convert(r cfi.Rule) rule {
	out := rule{kind: r.Kind}
	switch r.Kind {
	case cfi.Offset, cfi.ValOffset:
		out.off = r.Off
	case cfi.Register:
		out.reg = uint64(r.Reg)
	case cfi.RegisterOffset:
		out.reg, out.off = uint64(r.Reg), r.Off
	case cfi.Expression, cfi.ValExpression:
		out.ops = opsText(r.Expr)
	}
	return out
}

// kept reports which registers rows have rules for, from the psABIs' numbering and
// not from Arch.Column, whose faults would else hide here.
func kept(arch context.Arch, reg int) bool {
	if arch == context.ArchAMD64 {
		return reg <= 32
	}
	return reg <= 34 || reg >= 64 && reg <= 95
}

// compare compares one row with libdw's answer for its first byte. starts are
// the begins of the earlier rows of the same FDE.
func (c *tally) compare(v *view, arch context.Arch, row *cfi.Row, starts []uint64, a *answer) {
	c.answers++
	fail := func(format string, args ...any) {
		c.fail("as %s, row %#x: %s", v.name, row.Lo, fmt.Sprintf(format, args...))
	}
	if a.err != "" || a.addr != row.Lo {
		fail("libdw has none: %#x %s", a.addr, a.err)
		return
	}
	if a.start != row.Lo {
		if slices.Contains(starts, a.start) {
			c.left[restoredStart]++
		} else {
			fail("libdw begins it at %#x", a.start)
		}
	}
	if a.end != row.Hi {
		fail("it ends at %#x, libdw: %#x", row.Hi, a.end)
	}
	if a.ra != uint64(row.FDE.RA) || a.signal != row.FDE.Signal {
		fail("return address r%d, signal %v; libdw: r%d, %v", row.FDE.RA, row.FDE.Signal, a.ra, a.signal)
	}
	if !c.rule(convert(row.CFA), a.cfa) {
		fail("CFA %v, libdw: %v", convert(row.CFA), a.cfa)
	}
	for reg := range registers {
		ours := row.Rule(arch, uint16(reg))
		switch {
		case ours.Kind != cfi.Unspecified:
			if !c.rule(convert(ours), a.regs[reg]) {
				fail("r%d: %v, libdw: %v", reg, convert(ours), a.regs[reg])
			}
		case a.regs[reg] == v.defaults[reg]:
			c.silent++
		case !kept(arch, reg):
			c.left[noColumn]++
		default:
			fail("r%d: no rule, libdw: %v", reg, a.regs[reg])
		}
	}
}

// rule counts one explicit rule and reports whether libdw's may stand for it.
func (c *tally) rule(ours, libdw rule) bool {
	c.rules++
	switch {
	case ours == libdw:
		c.agreed++
	case ours == (rule{kind: cfi.Expression}) && libdw == (rule{kind: cfi.Undefined}):
		c.left[emptyExpr]++
	default:
		return false
	}
	return true
}

// A comparison must notice every change of a row, and explain none away.
func TestCompareNotices(t *testing.T) {
	v := &view{name: "test"}
	for i := range v.defaults {
		v.defaults[i] = rule{kind: cfi.Undefined}
	}
	v.defaults[6] = rule{kind: cfi.SameValue}
	row := func() *cfi.Row {
		r := &cfi.Row{FDE: cfi.FDE{Lo: 0x10, Hi: 0x40, RA: 16}, Lo: 0x20, Hi: 0x30}
		r.CFA = cfi.Rule{Kind: cfi.RegisterOffset, Reg: 7, Off: 16}
		r.Regs[3] = cfi.Rule{Kind: cfi.Expression, Expr: []byte{cfi.DW_OP_breg0 + 6, 0x78}}
		r.Regs[12] = cfi.Rule{Kind: cfi.ValOffset, Off: -24}
		r.Regs[13] = cfi.Rule{Kind: cfi.Register, Reg: 1}
		r.Regs[16] = cfi.Rule{Kind: cfi.Offset, Off: -8}
		return r
	}
	const line = "20 20 30 16 0 r7+16 3=e76:fffffffffffffff8:0 6=s 7=u 12=v-24 13=r1 16=o-8"
	cases := []struct {
		name   string
		line   string
		change func(*cfi.Row)
		wrong  int
		left   class
	}{
		{name: "the same", line: line},
		{"CFA offset", line, func(r *cfi.Row) { r.CFA.Off = 24 }, 1, ""},
		{"CFA register", line, func(r *cfi.Row) { r.CFA.Reg = 6 }, 1, ""},
		{"CFA kind", line, func(r *cfi.Row) { r.CFA = cfi.Rule{Kind: cfi.Expression} }, 1, ""},
		{"saved elsewhere", line, func(r *cfi.Row) { r.Regs[16].Off = -16 }, 1, ""},
		{"value, not address", line, func(r *cfi.Row) { r.Regs[16].Kind = cfi.ValOffset }, 1, ""},
		{"other register", line, func(r *cfi.Row) { r.Regs[13].Reg = 2 }, 1, ""},
		{"expression operand", line, func(r *cfi.Row) { r.Regs[3].Expr = []byte{0x76, 0x70} }, 1, ""},
		{"expression cut", line, func(r *cfi.Row) { r.Regs[3].Expr = []byte{0x92, 6} }, 1, ""},
		{"expression of a value", line, func(r *cfi.Row) { r.Regs[3].Kind = cfi.ValExpression }, 1, ""},
		{"expression emptied", line, func(r *cfi.Row) { r.Regs[3].Expr = nil }, 1, ""},
		{"expression of nothing", strings.Replace(line, " 12=v-24", "", 1),
			func(r *cfi.Row) { r.Regs[12] = cfi.Rule{Kind: cfi.Expression} }, 0, emptyExpr},
		{"rule lost", line, func(r *cfi.Row) { r.Regs[12] = cfi.Rule{} }, 1, ""},
		{"rule invented", line, func(r *cfi.Row) { r.Regs[14] = cfi.Rule{Kind: cfi.SameValue} }, 1, ""},
		{"default taken for undefined", line,
			func(r *cfi.Row) { r.Regs[6] = cfi.Rule{Kind: cfi.Undefined} }, 1, ""},
		{"row too long", line, func(r *cfi.Row) { r.Hi = 0x31 }, 1, ""},
		{"other return address", line, func(r *cfi.Row) { r.FDE.RA = 15 }, 1, ""},
		{"signal", line, func(r *cfi.Row) { r.FDE.Signal = true }, 1, ""},
		{"two faults", line, func(r *cfi.Row) { r.Hi, r.CFA.Off = 0x31, 8 }, 2, ""},
		{"begins too early", strings.Replace(line, "20 20", "20 1f", 1), nil, 1, ""},
		{"begins at a remembered row", strings.Replace(line, "20 20", "20 18", 1), nil, 0, restoredStart},
		{"libdw's default broken", strings.Replace(line, "6=s", "5=s", 1), nil, 1, ""},
		{"libdw's default gone", strings.Replace(line, "6=s 7=u ", "", 1), nil, 1, ""},
		{"libdw's default too long", strings.Replace(line, "7=u", "8=u", 1), nil, 1, ""},
		{"x87", line + " 33=o-16", nil, 0, noColumn},
		{"xmm15", line + " 32=o-16", nil, 1, ""},
		{"no answer", "20 error no matching address range", nil, 1, ""},
		{"answer for another address", strings.Replace(line, "20", "21", 1), nil, 1, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var a answer
			must.Do(t, a.parse(tc.line))
			r, c := row(), newTally()
			if tc.change != nil {
				tc.change(r)
			}
			c.compare(v, context.ArchAMD64, r, []uint64{0x10, 0x18}, &a)
			want := map[class]int{}
			if tc.left != "" {
				want[tc.left] = 1
			}
			expect.True(t, c.wrongs == tc.wrong && fmt.Sprint(c.left) == fmt.Sprint(want),
				"%d wrong, want %d; left out %v, want %v\n%s", c.wrongs, tc.wrong, c.left, want,
				strings.Join(c.wrong, "\n"))
		})
	}
}

// A line that is no answer is an error, never a row.
func TestParseRefuses(t *testing.T) {
	for _, line := range []string{"", "20", "20 20 30 16 0", "20 20 30 16 0 none",
		"20 20 30 16 0 r7+8 200=s", "20 20 30 16 0 r7+8 3=q",
		"20 20 30 16 0 r7+8 3", "20 20 30 16 0 error(x)", "20 zz 30 16 0 r7+8",
		"20 20 30 16 0 r7+8 3=o", "20 20 30 x 0 r7+8",
		"20 20 30 16 0 r7+8 3=o-8 3=o-8", "20 20 30 16 0 r7+8 5=s 4=u"} {
		expect.True(t, new(answer).parse(line) != nil, "%q was read", line)
	}
}
