package cfi

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// table loads one .eh_frame and expects no damage.
func table(t testing.TB, arch context.Arch, eh []byte) *Table {
	t.Helper()
	return must.Get(Load(Sections{Arch: arch, EHFrame: eh, EHFrameAddr: 0x4000}))(t)
}

var entryCFA = Rule{Kind: RegisterOffset, Reg: 7, Off: 8}

// effect is what a program does to the row at fnLo+at.
type effect struct {
	name   string
	arch   context.Arch
	code   []byte
	at     uint64
	cfa    Rule         // zero: entryCFA
	regs   map[int]Rule // by column; 16 is Offset -8 unless given
	lo, hi uint64       // of the row, relative to fnLo; hi 0: to the end
	raSign bool
}

func off(n int64) Rule { return Rule{Kind: Offset, Off: n} }

var effects = []effect{
	{name: "nop", code: []byte{DW_CFA_nop}},
	{name: "advance_loc before", code: []byte{DW_CFA_advance_loc | 4, DW_CFA_undefined, 3}, at: 3, hi: 4},
	{name: "advance_loc at", code: []byte{DW_CFA_advance_loc | 4, DW_CFA_undefined, 3}, at: 4, lo: 4,
		regs: map[int]Rule{3: {Kind: Undefined}}},
	{name: "set_loc", code: append(new(asm).u8(DW_CFA_set_loc).u64(fnLo+8).b, DW_CFA_undefined, 3), at: 8,
		lo: 8, regs: map[int]Rule{3: {Kind: Undefined}}},
	{name: "advance_loc1", code: []byte{DW_CFA_advance_loc1, 0x80, DW_CFA_undefined, 3}, at: 0x80, lo: 0x80,
		regs: map[int]Rule{3: {Kind: Undefined}}},
	{name: "advance_loc2", code: []byte{DW_CFA_advance_loc2, 0x90, 0, DW_CFA_undefined, 3}, at: 0x91,
		lo: 0x90, regs: map[int]Rule{3: {Kind: Undefined}}},
	{name: "advance_loc4", code: []byte{DW_CFA_advance_loc4, 0x90, 0, 0, 0, DW_CFA_undefined, 3},
		at: 0x8f, hi: 0x90},
	{name: "MIPS_advance_loc8",
		code: []byte{DW_CFA_MIPS_advance_loc8, 0x90, 0, 0, 0, 0, 0, 0, 0, DW_CFA_undefined, 3}, at: 0x90,
		lo: 0x90, regs: map[int]Rule{3: {Kind: Undefined}}},
	{name: "advance past the function",
		code: []byte{DW_CFA_advance_loc2, 0xff, 0xff, DW_CFA_undefined, 3}, at: 0xff},
	{name: "offset", code: []byte{DW_CFA_offset | 3, 2}, regs: map[int]Rule{3: off(-16)}},
	{name: "offset_extended", code: []byte{DW_CFA_offset_extended, 12, 0x81, 1},
		regs: map[int]Rule{12: off(-129 * 8)}},
	{name: "offset_extended_sf", code: []byte{DW_CFA_offset_extended_sf, 12, 0x7e},
		regs: map[int]Rule{12: off(16)}},
	{name: "GNU_negative_offset_extended", code: []byte{DW_CFA_GNU_negative_offset_ext, 12, 2},
		regs: map[int]Rule{12: off(16)}},
	{name: "val_offset", code: []byte{DW_CFA_val_offset, 12, 2},
		regs: map[int]Rule{12: {Kind: ValOffset, Off: -16}}},
	{name: "val_offset_sf", code: []byte{DW_CFA_val_offset_sf, 12, 0x7f},
		regs: map[int]Rule{12: {Kind: ValOffset, Off: 8}}},
	{name: "undefined", code: []byte{DW_CFA_undefined, 16}, regs: map[int]Rule{16: {Kind: Undefined}}},
	{name: "same_value", code: []byte{DW_CFA_same_value, 3}, regs: map[int]Rule{3: {Kind: SameValue}}},
	{name: "register", code: []byte{DW_CFA_register, 16, 2},
		regs: map[int]Rule{16: {Kind: Register, Reg: 2}}},
	{name: "expression", code: []byte{DW_CFA_expression, 3, 2, DW_OP_breg0 + 7, 8},
		regs: map[int]Rule{3: {Kind: Expression, Expr: []byte{DW_OP_breg0 + 7, 8}}}},
	{name: "val_expression", code: []byte{DW_CFA_val_expression, 3, 1, DW_OP_lit0},
		regs: map[int]Rule{3: {Kind: ValExpression, Expr: []byte{DW_OP_lit0}}}},
	{name: "empty expression", code: []byte{DW_CFA_expression, 3, 0},
		regs: map[int]Rule{3: {Kind: Expression, Expr: []byte{}}}},
	{name: "restore to the CIE's rule, after an advance",
		code: []byte{DW_CFA_offset | 16, 4, DW_CFA_advance_loc | 1, DW_CFA_restore | 16}, at: 1, lo: 1},
	{name: "restore to no rule", code: []byte{DW_CFA_offset | 3, 4, DW_CFA_restore | 3}},
	{name: "restore_extended", code: []byte{DW_CFA_offset | 3, 4, DW_CFA_restore_extended, 3}},
	{name: "def_cfa", code: []byte{DW_CFA_def_cfa, 6, 16}, cfa: Rule{Kind: RegisterOffset, Reg: 6, Off: 16}},
	{name: "def_cfa_sf", code: []byte{DW_CFA_def_cfa_sf, 6, 0x7e},
		cfa: Rule{Kind: RegisterOffset, Reg: 6, Off: 16}},
	{name: "def_cfa_register", code: []byte{DW_CFA_def_cfa_register, 6},
		cfa: Rule{Kind: RegisterOffset, Reg: 6, Off: 8}},
	{name: "def_cfa_offset", code: []byte{DW_CFA_def_cfa_offset, 32},
		cfa: Rule{Kind: RegisterOffset, Reg: 7, Off: 32}},
	{name: "def_cfa_offset_sf", code: []byte{DW_CFA_def_cfa_offset_sf, 0x7c},
		cfa: Rule{Kind: RegisterOffset, Reg: 7, Off: 32}},
	{name: "def_cfa_expression", code: []byte{DW_CFA_def_cfa_expression, 1, DW_OP_lit0 + 1},
		cfa: Rule{Kind: Expression, Reg: 7, Off: 8, Expr: []byte{DW_OP_lit0 + 1}}},
	{name: "def_cfa_register after an expression",
		code: []byte{DW_CFA_def_cfa_offset, 48, DW_CFA_def_cfa_expression, 1, DW_OP_lit0,
			DW_CFA_def_cfa_register, 6}, cfa: Rule{Kind: RegisterOffset, Reg: 6, Off: 48}},
	{name: "def_cfa_offset after an expression",
		code: []byte{DW_CFA_def_cfa_expression, 1, DW_OP_lit0, DW_CFA_def_cfa_offset, 24},
		cfa:  Rule{Kind: Expression, Reg: 7, Off: 24, Expr: []byte{DW_OP_lit0}}},
	{name: "def_cfa_offset of two bytes after an expression",
		code: []byte{DW_CFA_def_cfa_expression, 1, DW_OP_lit0, DW_CFA_def_cfa_offset, 0x98, 1},
		cfa:  Rule{Kind: Expression, Reg: 7, Off: 152, Expr: []byte{DW_OP_lit0}}},
	{name: "def_cfa_offset and def_cfa_register after an expression",
		code: []byte{DW_CFA_def_cfa_expression, 1, DW_OP_lit0, DW_CFA_def_cfa_offset, 24,
			DW_CFA_def_cfa_register, 7}, cfa: Rule{Kind: RegisterOffset, Reg: 7, Off: 24}},
	{name: "an expression is remembered",
		code: []byte{DW_CFA_def_cfa_expression, 1, DW_OP_lit0, DW_CFA_remember_state, DW_CFA_def_cfa_register,
			6, DW_CFA_restore_state}, cfa: Rule{Kind: Expression, Reg: 7, Off: 8, Expr: []byte{DW_OP_lit0}}},
	{name: "full def_cfa after an expression",
		code: []byte{DW_CFA_def_cfa_expression, 1, DW_OP_lit0, DW_CFA_def_cfa, 7, 8}},
	{name: "remember and restore rules and CFA",
		code: []byte{DW_CFA_offset | 3, 2, DW_CFA_remember_state, DW_CFA_def_cfa_offset, 64,
			DW_CFA_restore | 3, DW_CFA_offset | 6, 2, DW_CFA_restore_state}, regs: map[int]Rule{3: off(-16)}},
	{name: "nested remember",
		code: []byte{DW_CFA_remember_state, DW_CFA_offset | 3, 2, DW_CFA_remember_state, DW_CFA_undefined, 3,
			DW_CFA_restore_state, DW_CFA_offset | 6, 3, DW_CFA_restore_state}},
	{name: "remember is popped only once",
		code: []byte{DW_CFA_remember_state, DW_CFA_offset | 3, 2, DW_CFA_remember_state, DW_CFA_undefined, 3,
			DW_CFA_restore_state}, regs: map[int]Rule{3: off(-16)}},
	{name: "GNU_args_size", code: []byte{DW_CFA_GNU_args_size, 0x90, 1, DW_CFA_undefined, 3},
		regs: map[int]Rule{3: {Kind: Undefined}}},
	{name: "a register without a column", code: []byte{DW_CFA_offset_extended, 50, 1, DW_CFA_undefined, 3},
		regs: map[int]Rule{3: {Kind: Undefined}}},
	{name: "xmm", code: []byte{DW_CFA_offset_extended, 17 + 6, 2}, regs: map[int]Rule{23: off(-16)}},
	{name: "v8", arch: context.ArchARM64, code: []byte{DW_CFA_offset_extended, 72, 2},
		regs: map[int]Rule{43: off(-16)}},
	{name: "negate_ra_state", arch: context.ArchARM64,
		code: []byte{DW_CFA_AARCH64_negate_ra_state}, raSign: true},
	{name: "negate_ra_state_with_pc", arch: context.ArchARM64,
		code: []byte{DW_CFA_AARCH64_negate_ra_state_pc}, raSign: true},
	{name: "negate_ra_state twice", arch: context.ArchARM64,
		code: []byte{DW_CFA_AARCH64_negate_ra_state, DW_CFA_advance_loc | 4, DW_CFA_AARCH64_negate_ra_state},
		at:   4, lo: 4},
	{name: "RA state is remembered", arch: context.ArchARM64,
		code: []byte{DW_CFA_AARCH64_negate_ra_state, DW_CFA_remember_state, DW_CFA_AARCH64_negate_ra_state,
			DW_CFA_restore_state}, raSign: true},
	{name: "what follows the row is not run", code: []byte{DW_CFA_advance_loc | 4, 0x3f}, at: 3, hi: 4},
}

func TestOpcodeEffects(t *testing.T) {
	var m Machine
	var row Row // shared on purpose: a row may be used again
	for _, e := range effects {
		t.Run(e.name, func(t *testing.T) {
			if e.arch == 0 {
				e.arch = context.ArchAMD64
			}
			tab := table(t, e.arch, ehFrame(e.code...))
			must.Equal(t, m.Row(tab, fnLo+e.at, &row), None)
			checkEffect(t, &e, &row)
		})
	}
}

func checkEffect(t *testing.T, e *effect, row *Row) {
	if e.cfa.Kind == Unspecified {
		e.cfa = entryCFA
	}
	expect.Equal(t, cmptest.Diff(e.cfa, row.CFA), "", "CFA = %+v, want %+v", row.CFA, e.cfa)
	want := map[int]Rule{16: off(-8)}
	for c, r := range e.regs {
		want[c] = r
	}
	for c := range row.Regs {
		if d := cmptest.Diff(want[c], row.Regs[c]); d != "" {
			t.Errorf("column %d = %+v, want %+v\n%s", c, row.Regs[c], want[c], d)
		}
		expect.Equal(t, row.Used[c>>6]>>(c&63)&1 != 0, row.Regs[c].Kind != Unspecified, "column %d: used", c)
	}
	if e.hi == 0 {
		e.hi = fnHi - fnLo
	}
	expect.True(t, row.Lo == fnLo+e.lo && row.Hi == fnLo+e.hi,
		"row [%#x,%#x), want [%#x,%#x)", row.Lo, row.Hi, fnLo+e.lo, fnLo+e.hi)
	expect.Equal(t, row.RASign, e.raSign, "RASign")
}

// TestOpcodeTruncated cuts every program of the effects at every byte: the
// answer is a row or Truncated, never anything else, and the last cut of an
// operand is Truncated.
func TestOpcodeTruncated(t *testing.T) {
	var m Machine
	var row Row
	truncated := 0
	for _, e := range effects {
		for n := 1; n < len(e.code); n++ {
			why := m.Row(table(t, context.ArchARM64, ehFrame(e.code[:n]...)), fnHi-1, &row)
			if why == Truncated {
				truncated++
			} else if why != None && e.code[n-1] != 0x3f {
				t.Errorf("%s cut to %d: %v", e.name, n, why)
			}
		}
	}
	expect.True(t, truncated >= 40, "only %d cuts were noticed", truncated)
}

func TestOpcodeErrors(t *testing.T) {
	bomb := make([]byte, MaxRemember+1)
	for i := range bomb {
		bomb[i] = DW_CFA_remember_state
	}
	full := make([]byte, MaxRemember)
	copy(full, bomb)
	long := make([]byte, MaxInstructions+1)
	for _, c := range []struct {
		name string
		arch context.Arch
		code []byte
		want Reason
	}{
		{"unknown opcode", context.ArchAMD64, []byte{0x3f}, BadOpcode},
		{"0x2d on x86-64", context.ArchAMD64, []byte{0x2d}, BadOpcode},
		{"0x2c on x86-64", context.ArchAMD64, []byte{0x2c}, BadOpcode},
		{"set_ra_state on x86-64", context.ArchAMD64, []byte{0x2b, 0, 0}, BadOpcode},
		{"set_ra_state on AArch64", context.ArchARM64, []byte{0x2b, 0, 0}, None},
		{"set_ra_state without its distance", context.ArchARM64, []byte{0x2b, 0}, Truncated},
		{"restore_state without remember", context.ArchAMD64, []byte{DW_CFA_restore_state}, BadOpcode},
		{"remember at the limit", context.ArchAMD64, full, None},
		{"remember bomb", context.ArchAMD64, bomb, TooDeep},
		{"expression past the record", context.ArchAMD64, []byte{DW_CFA_expression, 3, 0x40, 0}, Truncated},
		{"overlong LEB128", context.ArchAMD64,
			[]byte{DW_CFA_undefined, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
				0x80, 0x80, 0x80, 0}, Truncated},
		{"set_loc backwards", context.ArchAMD64,
			new(asm).u8(DW_CFA_advance_loc | 4).u8(DW_CFA_set_loc).u64(fnLo + 1).b, BadRecord},
		{"advance that wraps", context.ArchAMD64,
			new(asm).u8(DW_CFA_MIPS_advance_loc8).u64(^uint64(0)).b, BadRecord},
		{"too many instructions", context.ArchAMD64, long, TooManySteps},
		{"too many, the last of two bytes", context.ArchAMD64, append(long, DW_CFA_offset|3, 2),
			TooManySteps},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m Machine
			var row Row
			tab := table(t, c.arch, ehFrame(c.code...))
			must.Equal(t, m.Row(tab, fnHi-1, &row), c.want)
			if c.want != None && (row.CFA.Kind != Unspecified || row.Used != [2]uint64{} ||
				row.FDE.Lo != fnLo) {
				t.Errorf("a refused row has rules or no FDE: %+v", row.FDE)
			}
		})
	}
}

// TestLocationWraps: a location does not wrap, neither by its factor nor by the FDE's address.
func TestLocationWraps(t *testing.T) {
	for _, c := range []struct {
		name      string
		align, lo uint64
		want      Reason
	}{
		{"a small factor", 4, fnLo, None},
		{"a product that wraps", 1 << 62, fnLo, BadRecord},
		{"a sum that wraps", 1, ^uint64(0) - 0x20, BadRecord},
	} {
		var a asm
		cie := a.begin()
		a.cieID().u8(1).str("").uleb(c.align).sleb(-8).u8(16, DW_CFA_def_cfa, 7, 8).end()
		a.begin()
		a.ciePtr(cie).u64(c.lo).u64(0x10).u8(DW_CFA_advance_loc|60, DW_CFA_def_cfa_offset, 16).end()
		var m Machine
		var row Row
		expect.Equal(t, m.Row(table(t, context.ArchAMD64, a.b), c.lo+1, &row), c.want, c.name)
	}
}

func TestCIEProgramErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		code []byte
		want Reason
	}{
		{"advance", []byte{DW_CFA_advance_loc | 1}, BadOpcode},
		{"restore", []byte{DW_CFA_restore | 1}, BadOpcode},
		{"no CFA", []byte{DW_CFA_offset | 16, 1}, BadRecord},
		{"truncated", []byte{DW_CFA_def_cfa, 7}, Truncated},
	} {
		var a asm
		a.simpleFDE(a.simpleCIE(c.code...))
		var m Machine
		var row Row
		expect.Equal(t, m.Row(table(t, context.ArchAMD64, a.b), fnLo, &row), c.want, c.name)
	}
}

func TestRows(t *testing.T) {
	tab := table(t, context.ArchAMD64,
		ehFrame(DW_CFA_advance_loc|1, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc, DW_CFA_offset|6, 2,
			DW_CFA_advance_loc|3, DW_CFA_def_cfa_register, 6))
	f, _ := tab.Find(fnLo)
	var m Machine
	var row, one Row
	var got [][2]uint64
	why := m.Rows(tab, &f, &row, func(r *Row) bool {
		got = append(got, [2]uint64{r.Lo, r.Hi})
		var m2 Machine
		if why := m2.Row(tab, r.Lo, &one); why != None || cmptest.Diff(*r, one) != "" {
			t.Errorf("Row(%#x) = %v %+v, Rows gave %+v", r.Lo, why, one, *r)
		}
		return true
	})
	want := [][2]uint64{{fnLo, fnLo + 1}, {fnLo + 1, fnLo + 4}, {fnLo + 4, fnHi}}
	expect.True(t, why == None && cmptest.Diff(want, got) == "", "%v %x, want %x", why, got, want)
	n := 0
	m.Rows(tab, &f, &row, func(*Row) bool { n++; return false })
	expect.Equal(t, n, 1, "calls after false")
}

// TestMachineKeepsNothing: a machine that is used for FDEs of several CIEs and
// tables in turn gives the same results as a new one.
func TestMachineKeepsNothing(t *testing.T) {
	var a asm
	add := func(lo uint64, program ...uint8) {
		cie := a.simpleCIE(program...)
		a.begin()
		a.ciePtr(cie).u64(lo).u64(16).u8(DW_CFA_offset|3, 2, DW_CFA_restore|6).end()
	}
	add(0x1000, DW_CFA_def_cfa, 7, 8, DW_CFA_offset|16, 1)
	add(0x2000, DW_CFA_def_cfa, 6, 16, DW_CFA_offset|6, 3)
	add(0x3000, DW_CFA_def_cfa, 7, 8, DW_CFA_remember_state, DW_CFA_undefined, 16)
	add(0x4000, DW_CFA_def_cfa, 7) // cut
	add(0x5000, DW_CFA_def_cfa, 7, 8, DW_CFA_AARCH64_negate_ra_state)
	add(0x6000, DW_CFA_def_cfa, 7, 8, DW_CFA_offset_extended, 95, 3) // v31
	other := table(t, context.ArchARM64, ehFrame())
	tab := table(t, context.ArchARM64, a.b)
	var used Machine
	var row Row
	for _, pc := range []uint64{0x1000, 0x2000, 0x1000, 0x3000, 0x3000, 0x4000, 0x4000,
		0x2000, 0x5000, 0x5001, 0x1001, 0x6000, 0x1000} {
		var fresh Machine
		var want Row
		why, why2 := used.Row(tab, pc, &row), fresh.Row(tab, pc, &want)
		expect.True(t, why == why2 && cmptest.Diff(want, row) == "",
			"%#x: %v %+v, want %v %+v", pc, why, row, why2, want)
		if pc == 0x2000 {
			used.Row(other, fnLo, &row)
		}
	}
}

// TestSetRAState: the opcode has a state and a distance, as LLVM writes them.
func TestSetRAState(t *testing.T) {
	tab := table(t, context.ArchARM64, ehFrame(0x2b, 1, 0, // signed with SP
		DW_CFA_advance_loc|4, 0x2b, 0, 0x7c, // not signed; the distance is -4
		DW_CFA_advance_loc|4, 0x2b, 2, 0x80, 1, // signed with SP and PC
		DW_CFA_advance_loc|4, 0x2d))
	var m Machine
	var row Row
	for i, want := range []bool{true, false, true, false} {
		why := m.Row(tab, fnLo+4*uint64(i), &row)
		expect.True(t, why == None && row.RASign == want, "row %d: %v, signed %v", i, why, row.RASign)
	}
}
