package cfi

import (
	"errors"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// goFrames is an FDE of a CIE as Go's linker writes it, or with another data alignment factor.
func goFrames(align int64, program ...byte) []byte {
	var a asm
	off := a.begin()
	a.cieID().u8(1).str("").uleb(1).sleb(align).u8(AMD64RA).raw([]byte{DW_CFA_def_cfa, 7, 8,
		DW_CFA_offset_extended_sf, AMD64RA, byte(-8/align) & 0x7f}).end()
	a.simpleFDE(off, program...)
	return a.u32(0).b
}

// TestGoRegisters: Go's functions preserve no register, and other compilers' functions do.
func TestGoRegisters(t *testing.T) {
	for _, c := range []struct {
		align int64
		rbx   Kind
		rbp   Kind
	}{{-4, Undefined, Offset}, {-8, Unspecified, Offset}} {
		saved := byte(-16 / c.align)
		tab := table(t, context.ArchAMD64, goFrames(c.align, DW_CFA_offset|6, saved))
		var m Machine
		var row Row
		must.Equal(t, m.Row(tab, fnLo, &row), None)
		expect.True(t, row.Regs[3].Kind == c.rbx && row.Regs[6].Kind == c.rbp && row.Regs[6].Off == -16 &&
			row.Regs[7].Kind == Unspecified,
			"factor %d: rbx %v, rbp %+v, rsp %v", c.align, row.Regs[3].Kind, row.Regs[6], row.Regs[7].Kind)
		var f FDE
		tab.Each(func(one FDE) bool { f = one; return false })
		m.Rows(tab, &f, &row, func(row *Row) bool {
			expect.True(t, row.Regs[3].Kind == c.rbx, "factor %d: rbx %v in Rows", c.align, row.Regs[3].Kind)
			return true
		})
	}
}

type omitAt struct {
	pc  uint64
	off int64
}

func (o *omitAt) Omits(pc uint64, off int64) bool { return pc == o.pc && off == o.off }

// TestRowWithout: an omitted CFA is neither in force nor remembered.
func TestRowWithout(t *testing.T) {
	tab := table(t, context.ArchAMD64,
		ehFrame(DW_CFA_def_cfa_offset, 40, DW_CFA_advance_loc|4, DW_CFA_def_cfa_offset, 16,
			DW_CFA_advance_loc|1, DW_CFA_remember_state, DW_CFA_def_cfa_offset, 8,
			DW_CFA_advance_loc|1, DW_CFA_restore_state))
	for _, c := range []struct {
		name string
		omit omitAt
		want [7]int64 // CFA by distance from the function's first byte
	}{
		{"omitted", omitAt{fnLo + 4, 16}, [7]int64{40, 40, 40, 40, 40, 8, 40}},
		{"another offset", omitAt{fnLo + 4, 24}, [7]int64{40, 40, 40, 40, 16, 8, 16}},
		{"another place", omitAt{fnLo + 5, 16}, [7]int64{40, 40, 40, 40, 16, 8, 16}},
	} {
		var m Machine
		var row Row
		for into, want := range c.want {
			why := m.RowWithout(&c.omit, tab, fnLo+uint64(into), &row)
			expect.True(t, why == None && row.CFA.Off == want,
				"%s: at %d: %v, CFA %d, want %d", c.name, into, why, row.CFA.Off, want)
		}
		m.Row(tab, fnLo+4, &row)
		expect.Equal(t, row.CFA.Off, 16, "%s: still omitted", c.name)
	}
}

// factored returns an .eh_frame whose CIE has the given alignment factors, and
// whose FDE covers size bytes.
func factored(code uint64, data int64, size uint64, program ...uint8) []byte {
	var a asm
	cie := a.begin()
	a.cieID().u8(1).str("").uleb(code).sleb(data).u8(16).u8(DW_CFA_def_cfa, 7, 8, DW_CFA_offset|16, 1).end()
	a.begin()
	return a.ciePtr(cie).u64(fnLo).u64(size).raw(program).end().u32(0).b
}

// TestFactors: advances are in units of the code alignment, offsets of the data
// alignment.
func TestFactors(t *testing.T) {
	for _, c := range []struct {
		name    string
		data    int64
		program []uint8
		lo      uint64 // where the last row begins
		rbx     int64
	}{
		{"advance_loc", -8, []uint8{DW_CFA_advance_loc | 3, DW_CFA_offset | 3, 2}, 12, -16},
		{"advance_loc1", -2, []uint8{DW_CFA_advance_loc1, 200, DW_CFA_offset | 3, 6}, 800, -12},
		{"advance_loc2", -16, []uint8{DW_CFA_advance_loc2, 0, 2, DW_CFA_offset | 3, 1}, 2048, -16},
		{"advance_loc4", 4, []uint8{DW_CFA_advance_loc4, 0, 0, 1, 0, DW_CFA_offset | 3, 1}, 1 << 18, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab := table(t, context.ArchAMD64, factored(4, c.data, 1<<20, c.program...))
			var m Machine
			var row Row
			why := m.Row(tab, fnLo+c.lo, &row)
			expect.True(t, why == None && row.Lo == fnLo+c.lo && row.Regs[3].Kind == Offset &&
				row.Regs[3].Off == c.rbx, "%v: row from +%#x, rbx %+v", why, row.Lo-fnLo, row.Regs[3])
			why = m.Row(tab, fnLo+c.lo-1, &row)
			expect.True(t, why == None && row.Hi == fnLo+c.lo && row.Regs[3].Kind == Unspecified,
				"%v: row to +%#x before it, rbx %+v", why, row.Hi-fnLo, row.Regs[3])
		})
	}
}

// TestLongAugmentation: an augmentation string longer than maxAugmentation is refused.
func TestLongAugmentation(t *testing.T) {
	for n, ok := range map[int]bool{maxAugmentation: true, maxAugmentation + 1: false} {
		var a asm
		cie := a.begin()
		a.cieID().u8(1).str("z"+
			strings.Repeat("G", n-1)).uleb(1).sleb(-8).u8(16).uleb(0).u8(DW_CFA_def_cfa, 7, 8).end()
		a.begin()
		a.ciePtr(cie).u64(fnLo).u64(8).uleb(0).end()
		_, err := Load(Sections{Arch: context.ArchAMD64, EHFrame: a.b})
		var fe *FormatError
		if (err == nil) != ok || !ok && !errors.As(err, &fe) {
			t.Errorf("%d letters: %v", n, err)
		}
	}
}

// TestNarrowAddresses: with addresses of 4 bytes sums are cut to them.
func TestNarrowAddresses(t *testing.T) {
	a := asm{}
	cie := a.begin()
	a.cieID().u8(4).str("zR").u8(4, 0).uleb(1).sleb(-8).uleb(16).uleb(1).u8(DW_EH_PE_datarel|
		DW_EH_PE_udata4).u8(DW_CFA_def_cfa, 7, 8).end()
	a.begin()
	a.ciePtr(cie).u32(0xfffff000).u32(8).uleb(0).end()
	tab := must.Get(Load(Sections{Arch: context.ArchAMD64, EHFrame: a.b, DataAddr: 0x2000}))(t)
	f, why := tab.Find(0x1004)
	expect.True(t, why == None && f.Lo == 0x1000, "%v %+v", why, f)
}

// TestHeaderIndirect: a header's count or table that would have to be read from
// relocated memory is refused.
func TestHeaderIndirect(t *testing.T) {
	for _, enc := range [][2]uint8{{DW_EH_PE_indirect | DW_EH_PE_udata4, DW_EH_PE_udata4},
		{DW_EH_PE_udata4, DW_EH_PE_indirect | DW_EH_PE_udata4}} {
		var hdr asm
		hdr.u8(1, DW_EH_PE_udata4, enc[0], enc[1]).u32(0).u32(1).u32(fnLo).u32(0)
		_, err := Load(Sections{Arch: context.ArchAMD64, EHFrame: ehFrame(), EHFrameHdr: hdr.b})
		var fe *FormatError
		expect.True(t, errors.As(err, &fe) && fe.Reason == BadEncoding, "%#x: %v", enc, err)
	}
}
