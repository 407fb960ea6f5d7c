package amd64

import (
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// TestLowered: an expression in the rule of a register becomes savedAt if it is a register plus a distance,
// and nothing else. An expression in the rule of the CFA must end with one read after that.
func TestLowered(t *testing.T) {
	const breg = cfi.DW_OP_breg0
	for _, c := range []struct {
		name   string
		expr   []byte
		behind []byte
		reg    uint16
		off    int64
		ok     bool
	}{
		{name: "RSP+40", expr: []byte{breg + dwarfRSP, 40}, reg: dwarfRSP, off: 40, ok: true},
		{name: "RSP+160", expr: []byte{breg + dwarfRSP, 0xa0, 1}, reg: dwarfRSP, off: 160, ok: true},
		{name: "RBP-8", expr: []byte{breg + dwarfRBP, 0x78}, reg: dwarfRBP, off: -8, ok: true},
		{name: "RIP", expr: []byte{breg + dwarfRA, 0}, reg: dwarfRA, ok: true},
		{name: "a CFA's read", expr: []byte{breg + dwarfRSP, 8, cfi.DW_OP_deref},
			behind: []byte{cfi.DW_OP_deref}, reg: dwarfRSP, off: 8, ok: true},
		{name: "a CFA without a read", expr: []byte{breg + dwarfRSP, 8}, behind: []byte{cfi.DW_OP_deref}},
		{name: "a read more", expr: []byte{breg + dwarfRSP, 8, cfi.DW_OP_deref}},
		{name: "a register that no row keeps", expr: []byte{breg + dwarfRA + 1, 0}},
		{name: "another operation", expr: []byte{cfi.DW_OP_plus_uconst, 40}},
		{name: "an operation below", expr: []byte{breg - 1, 40}},
		{name: "cut off", expr: []byte{breg + dwarfRSP, 0x80}},
		{name: "too long a number",
			expr: []byte{breg, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}},
		{name: "nothing"},
	} {
		rule := cfi.Rule{Kind: cfi.Expression, Expr: c.expr}
		kind, reg, off := lowered(&rule, c.behind...)
		want := cfi.Expression
		if c.ok {
			want = savedAt
		}
		expect.True(t, kind == want && reg == c.reg && off == c.off,
			"%s: kind %v, register %d%+d", c.name, kind, reg, off)
	}
	plain := cfi.Rule{Kind: cfi.ValExpression, Expr: []byte{breg + dwarfRSP, 8}}
	kind, _, _ := lowered(&plain)
	expect.True(t, kind == cfi.ValExpression, "a value expression became %v", kind)
}

// A savedAt rule gives the same result as the expression that it was made from, whether
// the register is known or not.
func TestSavedWordIsTheExpression(t *testing.T) {
	s, regs := newStack(), start(at(0), sp0)
	for d := range uint16(dwarfRA + 1) {
		for _, known := range []bool{true, false} {
			r := regs
			for i := range r.GPR {
				r.GPR[i] = sp0 + 8*uint64(i)
			}
			r.RIP = sp0 + 8*dwarfRA
			if !known {
				r.Known = 0
			}
			var e cfi.ExprEnv
			enter(&e, &r, s.Window(), 0)
			e.CFA, e.PushCFA = sp0, true
			rule := cfi.Rule{Kind: cfi.Expression, Expr: []byte{cfi.DW_OP_breg0 + byte(d), 16}}
			want, ok := value(&rule, d, &e)
			rule.Kind, rule.Reg, rule.Off = lowered(&rule)
			must.Equal(t, rule.Kind, savedAt, "register %d", d)
			got, ok2 := value(&rule, d, &e)
			expect.True(t, got == want && ok == ok2,
				"register %d, known %v: %#x %v, the expression says %#x %v", d, known, got, ok2, want, ok)
		}
	}
}

// Expressions see each register under its DWARF number, and as known if it is.
func TestEnter(t *testing.T) {
	for d, n := range fromDWARF {
		r := Registers{RIP: 99, Known: 1<<n | 0x3ff<<16}
		for i := range r.GPR {
			r.GPR[i] = uint64(i)
		}
		var e cfi.ExprEnv
		enter(&e, &r, nil, 0)
		if want := uint64(1<<d | 1<<dwarfRSP | 1<<dwarfRA); e.Regs[d] != uint64(n) || e.Known != want {
			t.Errorf("DWARF register %d is %d, want %d; known %#x, want %#x", d, e.Regs[d], n, e.Known, want)
		}
		expect.True(t, e.Regs[dwarfRA] == 99 && e.Regs[dwarfRSP] == context.RSP,
			"%d: RIP %d, RSP %d", d, e.Regs[dwarfRA], e.Regs[dwarfRSP])
	}
}

// TestSideOfModule: rows of two images that claim the same addresses are two rules.
func TestSideOfModule(t *testing.T) {
	u := New()
	row := cfi.Row{Lo: 0x1000, Hi: 0x1010}
	first, again, other := u.addSide(&row, 0, 0x5000), u.addSide(&row, 0, 0x5000), u.addSide(&row, 1, 0x5000)
	if first != again || first == other || u.sides[other].module != 1 || u.sides[other].lo != 0x6000 {
		t.Errorf("rules %d, %d and %d, the last of module %d at %#x", first, again, other,
			u.sides[other].module, u.sides[other].lo)
	}
}

// TestSideOfRegisters: two corrections of a row that differ in one register are two rules.
func TestSideOfRegisters(t *testing.T) {
	u := New()
	row := cfi.Row{Lo: 0x1000, Hi: 0x1010}
	first := u.addSide(&row, 0, 0x5000)
	row.Set(dwarfRBX, cfi.Rule{Kind: cfi.Offset, Off: -16})
	expect.True(t, first != u.addSide(&row, 0, 0x5000), "both have rule %d", first)
}

// TestSidesOfRow: addresses of one row do not share a side rule that was corrected for one of them.
func TestSidesOfRow(t *testing.T) {
	code := []byte{0x90, 0x90, 0x59, 0x0f, 0xae, 0xe8, 0xff, 0xe1} // pop rcx; lfence; jmp rcx
	program := []byte{cfi.DW_CFA_undefined, dwarfRBX, cfi.DW_CFA_advance_loc | 8,
		cfi.DW_CFA_def_cfa_offset, 16}
	u := unwinder(describedTable(t, code, program))
	for range 2 {
		for _, c := range []struct{ at, sp uint64 }{{2, sp0 + 8}, {3, sp0}, {0, sp0 + 8}, {6, sp0}} {
			s, r := newStack(), start(codeLo+c.at, sp0)
			s.Set(sp0, codeCall)
			r.GPR[context.RCX] = codeCall
			var f unwind.Frame
			_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
			expect.True(t, stop == unwind.StopNone && r.RIP == codeCall && r.GPR[context.RSP] == c.sp &&
				!known(&r, context.RBX), "at %d: %v, ip %#x, sp %#x", c.at, stop, r.RIP, r.GPR[context.RSP])
		}
	}
}
