package cfi

import (
	"testing"

	"github.com/seedwalk/seedwalk/context"
)

// goFrames is an FDE of a CIE as Go's linker writes it, or with another data alignment factor.
func goFrames(align int64, program ...byte) []byte {
	var a asm
	off := a.begin()
	a.cieID().u8(1).str("").uleb(1).sleb(align).u8(AMD64RA).raw([]byte{DW_CFA_def_cfa, 7, 8, DW_CFA_offset_extended_sf, AMD64RA, byte(-8/align) & 0x7f}).end()
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
		if why := m.Row(tab, fnLo, &row); why != None {
			t.Fatal(why)
		}
		if row.Regs[3].Kind != c.rbx || row.Regs[6].Kind != c.rbp || row.Regs[6].Off != -16 || row.Regs[7].Kind != Unspecified {
			t.Errorf("factor %d: rbx %v, rbp %+v, rsp %v", c.align, row.Regs[3].Kind, row.Regs[6], row.Regs[7].Kind)
		}
		var f FDE
		tab.Each(func(one FDE) bool { f = one; return false })
		m.Rows(tab, &f, &row, func(row *Row) bool {
			if row.Regs[3].Kind != c.rbx {
				t.Errorf("factor %d: rbx %v in Rows", c.align, row.Regs[3].Kind)
			}
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
	tab := table(t, context.ArchAMD64, ehFrame(DW_CFA_def_cfa_offset, 40, DW_CFA_advance_loc|4, DW_CFA_def_cfa_offset, 16,
		DW_CFA_advance_loc|1, DW_CFA_remember_state, DW_CFA_def_cfa_offset, 8, DW_CFA_advance_loc|1, DW_CFA_restore_state))
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
			if why := m.RowWithout(&c.omit, tab, fnLo+uint64(into), &row); why != None || row.CFA.Off != want {
				t.Errorf("%s: at %d: %v, CFA %d, want %d", c.name, into, why, row.CFA.Off, want)
			}
		}
		if m.Row(tab, fnLo+4, &row); row.CFA.Off != 16 {
			t.Errorf("%s: still omitted", c.name)
		}
	}
}
