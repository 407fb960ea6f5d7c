package cfi

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
)

// described writes an FDE of 256 bytes at lo.
func (a *asm) described(cie int, lo uint64, program ...uint8) {
	a.begin()
	a.ciePtr(cie).u64(lo).u64(0x100).raw(program).end()
}

// TestCIERemembers: a state that a CIE remembers is each of its FDEs' to restore, and the rules
// of a CIE are never another's.
func TestCIERemembers(t *testing.T) {
	var a asm
	first := a.simpleCIE()
	a.described(first, 0x1000)
	second := a.simpleCIE(DW_CFA_def_cfa, 6, 16, DW_CFA_offset|16, 1, DW_CFA_remember_state)
	a.described(second, 0x2000, DW_CFA_def_cfa_offset, 64, DW_CFA_advance_loc|4, DW_CFA_restore_state)
	a.described(second, 0x3000, DW_CFA_def_cfa_offset, 32, DW_CFA_advance_loc|4, DW_CFA_restore_state)
	tab := table(t, context.ArchAMD64, a.u32(0).b)
	var m Machine
	var row Row
	for _, c := range []struct {
		pc  uint64
		reg uint16
		off int64
	}{{0x1000, 7, 8}, {0x2000, 6, 64}, {0x2004, 6, 16}, {0x3004, 6, 16}, {0x3000, 6, 32}, {0x1000, 7, 8}} {
		if why := m.Row(tab, c.pc, &row); why != None || row.CFA.Reg != c.reg || row.CFA.Off != c.off {
			t.Errorf("%#x: %v, CFA of register %d + %d, want %d + %d", c.pc, why, row.CFA.Reg, row.CFA.Off, c.reg, c.off)
		}
	}
}

// TestNoCFAToChange: a part of a CFA cannot change before there is one.
func TestNoCFAToChange(t *testing.T) {
	for _, op := range []uint8{DW_CFA_def_cfa_register, DW_CFA_def_cfa_offset, DW_CFA_def_cfa_offset_sf} {
		var a asm
		a.simpleFDE(a.simpleCIE(DW_CFA_offset|16, 1), op, 6)
		var m Machine
		var row Row
		if why := m.Row(table(t, context.ArchAMD64, a.u32(0).b), fnLo, &row); why != BadOpcode {
			t.Errorf("%#x: %v, want %v", op, why, BadOpcode)
		}
	}
}

// TestWideRegisterNumbers: a number of more than 16 bits is no register's.
func TestWideRegisterNumbers(t *testing.T) {
	for number, want := range map[uint64]uint16{3: 3, 0xfffe: 0xfffe, 0x10003: 0xffff, 0x1_0000_0003: 0xffff} {
		code := new(asm).u8(DW_CFA_register, 3).uleb(number).u8(DW_CFA_def_cfa_register).uleb(number).b
		var m Machine
		var row Row
		why := m.Row(table(t, context.ArchAMD64, ehFrame(code...)), fnLo, &row)
		if why != None || row.Regs[3].Reg != want || row.CFA.Reg != want {
			t.Errorf("%#x: %v, registers %#x and %#x", number, why, row.Regs[3].Reg, row.CFA.Reg)
		}
	}
}
