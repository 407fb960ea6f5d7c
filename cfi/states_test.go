package cfi

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// described writes an FDE of 256 bytes at lo.
func (a *asm) described(cie int, lo uint64, program ...uint8) {
	a.begin()
	a.ciePtr(cie).u64(lo).u64(0x100).raw(program).end()
}

// TestCIERemembers: each FDE can restore a state that its CIE remembers, and never gets the rules
// of another CIE.
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
			t.Errorf("%#x: %v, CFA of register %d + %d, want %d + %d", c.pc, why,
				row.CFA.Reg, row.CFA.Off, c.reg, c.off)
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
		expect.Equal(t, m.Row(table(t, context.ArchAMD64, a.u32(0).b), fnLo, &row), BadOpcode, "%#x", op)
	}
}

// TestWideRegisterNumbers: a number of more than 16 bits is no register's.
func TestWideRegisterNumbers(t *testing.T) {
	for number, want := range map[uint64]uint16{3: 3, 0xfffe: 0xfffe,
		0x10003: 0xffff, 0x1_0000_0003: 0xffff} {
		code := new(asm).u8(DW_CFA_register, 3).uleb(number).u8(DW_CFA_def_cfa_register).uleb(number).b
		var m Machine
		var row Row
		why := m.Row(table(t, context.ArchAMD64, ehFrame(code...)), fnLo, &row)
		expect.True(t, why == None && row.Regs[3].Reg == want && row.CFA.Reg == want,
			"%#x: %v, registers %#x and %#x", number, why, row.Regs[3].Reg, row.CFA.Reg)
	}
}

// TestZeroesInDebugFrame: words of zero end .eh_frame; .debug_frame continues after them.
func TestZeroesInDebugFrame(t *testing.T) {
	a := asm{debug: true}
	a.u32(0).u32(0)
	a.simpleFDE(a.simpleCIE())
	tab, err := Load(Sections{Arch: context.ArchAMD64, DebugFrame: a.b})
	_, why := tab.Find(fnLo)
	expect.True(t, err == nil && why == None, "%v, %v", why, err)
}

// TestLettersBehindG: a letter that needs nothing ends no augmentation.
func TestLettersBehindG(t *testing.T) {
	var a asm
	cie := a.cie(cieSpec{version: 1, aug: "zGS"})
	a.begin()
	a.ciePtr(cie).u64(fnLo).u64(16).u8(0).end()
	f, why := table(t, context.ArchAMD64, a.u32(0).b).Find(fnLo)
	expect.True(t, why == None && f.Signal, "%v, signal %v", why, f.Signal)
}

// TestNoSuchReturnRegister: a return address register number of more than 16 bits is refused.
func TestNoSuchReturnRegister(t *testing.T) {
	var a asm
	cie := a.begin()
	a.cieID().u8(3).str("").uleb(1).sleb(-8).uleb(0x10010).u8(DW_CFA_def_cfa, 7, 8, DW_CFA_offset|16, 1).end()
	a.simpleFDE(cie)
	tab, err := Load(Sections{Arch: context.ArchAMD64, EHFrame: a.u32(0).b, EHFrameAddr: 0x4000})
	_, why := tab.Find(fnLo)
	expect.True(t, err != nil && why != None, "%v, %v", why, err)
}

// TestHeaderStarts: a header's start that is not its FDE's is counted, however near.
func TestHeaderStarts(t *testing.T) {
	const ehAddr, hdrAddr = 0x2000, 0x1f00
	for by, want := range map[uint32]int{0: 0, 4: 1} {
		var a, h asm
		cie := a.simpleCIE()
		first := uint64(len(a.b))
		a.simpleFDE(cie)
		h.u8(1, 0x1b, 0x03, 0x3b).u32(ehAddr - hdrAddr - 4).u32(1)
		h.u32(fnLo + by + ^uint32(hdrAddr) + 1).u32(uint32(ehAddr + first - hdrAddr))
		tab := mustLoad(t, Sections{Arch: context.ArchAMD64, EHFrame: a.u32(0).b, EHFrameAddr: ehAddr,
			EHFrameHdr: h.b, EHFrameHdrAddr: hdrAddr})
		expect.Equal(t, tab.Stats().HeaderWrong, want, "%d bytes away: wrong", by)
	}
}

// TestBadCIEAgain: an FDE whose CIE cannot be read has no row, at the second look too.
func TestBadCIEAgain(t *testing.T) {
	var a, h asm
	const ehAddr, hdrAddr = 0x2000, 0x1f00
	cie := a.cie(cieSpec{version: 9})
	first := uint64(len(a.b))
	a.simpleFDE(cie)
	h.u8(1, 0x1b, 0x03, 0x3b).u32(ehAddr - hdrAddr - 4).u32(1)
	h.u32(fnLo + ^uint32(hdrAddr) + 1).u32(uint32(ehAddr + first - hdrAddr))
	tab := Open(Sections{Arch: context.ArchAMD64, EHFrame: a.u32(0).b, EHFrameAddr: ehAddr,
		EHFrameHdr: h.b, EHFrameHdrAddr: hdrAddr})
	var m Machine
	var row Row
	for range 2 {
		why := m.Row(tab, fnLo, &row)
		expect.True(t, !tab.Read() && why == NoInfo, "%v, all read %v", why, tab.Read())
	}
}

// TestFirstIntoRecord: before all records are read, too, the header does not lead into one. Its
// rows are of another record's start, and of bytes in a record that look like one.
func TestFirstIntoRecord(t *testing.T) {
	const ehAddr, hdrAddr = 0x2000, 0x1f00
	var a, h asm
	cie := a.simpleCIE()
	outer := len(a.b)
	a.simpleFDE(cie)
	inner := len(a.b)
	a.begin()
	a.ciePtr(cie).u64(0x9000).u64(16).end()
	length := binary.LittleEndian.Uint32(a.b[outer:])
	binary.LittleEndian.PutUint32(a.b[outer:], length+uint32(len(a.b)-inner))
	h.u8(1, 0x1b, 0x03, 0x3b).u32(ehAddr - hdrAddr - 4).u32(2)
	h.u32(0x8000 - hdrAddr).u32(uint32(ehAddr + inner - hdrAddr))
	h.u32(0x9000 - hdrAddr).u32(uint32(ehAddr + outer - hdrAddr))
	tab := Open(Sections{Arch: context.ArchAMD64, EHFrame: a.u32(0).b, EHFrameAddr: ehAddr,
		EHFrameHdr: h.b, EHFrameHdrAddr: hdrAddr})
	_, why := tab.Find(0x9000)
	expect.True(t, why == NoInfo && !tab.Read(), "%v, all read %v", why, tab.Read())
}
