package cfi

import (
	"math/rand"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// asCommon is a row as a common one, if it is one.
func asCommon(row *Row) (c CommonRow, ok bool) {
	if row.FDE.Signal || row.FDE.RA != AMD64RA || row.CFA.Kind != RegisterOffset || row.Used[1] != 0 {
		return c, false
	}
	if ra := &row.Regs[AMD64RA]; ra.Kind != Offset || ra.Off != -8 || row.CFA.Reg > 0xff || row.CFA.Off < 0 {
		return c, false
	}
	c.Reg, c.Off = uint8(row.CFA.Reg), uint64(row.CFA.Off)
	for n := range 64 {
		rule := &row.Regs[n]
		switch word := uint64(-rule.Off / 8); {
		case n == AMD64RA || rule.Kind == Unspecified:
		case n > 15 || rule.Kind != Offset || rule.Off&7 != 0 || word < 1 || word > 15:
			return c, false
		default:
			c.Words |= word << (4 * n)
		}
	}
	return c, true
}

// commonProgram is mostly of what common rows are made of.
func commonProgram(r *rand.Rand) (code []byte) {
	for range r.Intn(20) {
		switch r.Intn(18) {
		case 0, 1, 2:
			code = append(code, DW_CFA_advance_loc|byte(r.Intn(64)))
		case 3, 4, 5:
			code = append(code, DW_CFA_offset|byte(r.Intn(17)), byte(r.Intn(17)))
		case 6, 7:
			code = append(code, DW_CFA_def_cfa_offset, byte(r.Intn(256)), byte(r.Intn(256)))
		case 8:
			code = append(code, DW_CFA_def_cfa_offset, byte(r.Intn(128)))
		case 9, 10:
			code = append(code, DW_CFA_remember_state)
		case 11, 12:
			code = append(code, DW_CFA_restore_state)
		case 13:
			code = append(code, DW_CFA_restore|byte(r.Intn(17)), DW_CFA_def_cfa_register, byte(r.Intn(17)))
		case 14:
			code = append(code, DW_CFA_def_cfa, byte(r.Intn(17)), byte(r.Intn(128)))
		case 15:
			code = append(code, []byte{DW_CFA_advance_loc1, DW_CFA_advance_loc2,
				DW_CFA_advance_loc4}[r.Intn(3)], byte(r.Intn(80)), 0, 0, 0)
		case 16:
			code = append(code, DW_CFA_GNU_args_size, byte(r.Intn(256)), DW_CFA_nop)
		default:
			code = append(code, byte(r.Intn(256)), byte(r.Intn(256)))
		}
	}
	return code[:len(code)-r.Intn(min(2, len(code)+1))]
}

// CommonRow and Machine.Row give the same rows for random programs at every pc, and for random
// CIEs.
func TestCommonRow(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	said, common := 0, 0
	for range 4000 {
		code := commonProgram(r)
		var a asm
		off := a.begin()
		aug, codeAlign, dataAlign, ra := "", uint64(1), int64(-8), uint8(AMD64RA)
		initial := append([]byte{}, commonInitial[:]...)
		switch r.Intn(20) { // one of many is another CIE
		case 0:
			aug = "S"
		case 1:
			codeAlign = 4
		case 2:
			dataAlign = -4
		case 3:
			ra = 15
		case 4:
			initial[r.Intn(len(initial))]++
		case 5:
			initial = initial[:len(initial)-1-r.Intn(2)]
		case 6:
			initial = append(initial, DW_CFA_nop, DW_CFA_offset|3, 2)
		case 7:
			initial = append(initial, DW_CFA_nop, DW_CFA_nop)
		}
		a.cieID().u8(1).str(aug).uleb(codeAlign).sleb(dataAlign).u8(ra).raw(initial).end()
		a.simpleFDE(off, code...)
		tab := table(t, context.ArchAMD64, a.u32(0).b)
		if tab.Len() == 0 {
			continue
		}
		var m Machine
		var full Row
		for pc := uint64(fnLo); pc < fnHi; pc += 1 + uint64(r.Intn(24)) {
			var got CommonRow
			ok, why := tab.CommonRow(pc, &got), m.Row(tab, pc, &full)
			want, is := asCommon(&full)
			if is = is && why == None; is {
				common++
			}
			if !ok {
				continue
			}
			got.Fell = false
			if said++; !is || got != want {
				t.Fatalf("% x of % x at %#x: %+v; %v, %+v", code, initial, pc, got, why, want)
			}
		}
	}
	t.Logf("%d of %d common rows", said, common)
	expect.True(t, said >= common/2 && said >= 10000, "only %d of %d common rows", said, common)
}

// TestCommonFell: a CFA that comes near to the stack pointer in one step is marked, also
// where it is restored.
func TestCommonFell(t *testing.T) {
	fell := []byte{DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 40, DW_CFA_advance_loc | 4,
		DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc | 4}
	for _, c := range []struct {
		name string
		code []byte
		want CommonRow
	}{
		{"from 40 to 16", fell, CommonRow{Reg: 7, Off: 16, Fell: true}},
		{"restored", append(fell[:len(fell):len(fell)], DW_CFA_remember_state, DW_CFA_def_cfa_offset, 8,
			DW_CFA_restore_state), CommonRow{Reg: 7, Off: 16, Fell: true}},
		{"changed again", append(fell[:len(fell):len(fell)], DW_CFA_def_cfa_offset, 24),
			CommonRow{Reg: 7, Off: 24}},
		{"from 24 to 16", []byte{DW_CFA_def_cfa_offset, 24, DW_CFA_def_cfa_offset, 16},
			CommonRow{Reg: 7, Off: 16}},
		{"from 40 to 24", []byte{DW_CFA_def_cfa_offset, 40, DW_CFA_def_cfa_offset, 24},
			CommonRow{Reg: 7, Off: 24}},
	} {
		var row CommonRow
		tab := table(t, context.ArchAMD64, ehFrame(c.code...))
		expect.True(t, tab.CommonRow(fnLo+20, &row) && row == c.want,
			"%s: %+v, want %+v", c.name, row, c.want)
	}
}

// There is no common row before the records are read, of another architecture, or without an FDE.
func TestNoCommonRow(t *testing.T) {
	var row CommonRow
	frames := ehFrame(DW_CFA_advance_loc|4, DW_CFA_def_cfa_offset, 16)
	tab := table(t, context.ArchAMD64, frames)
	expect.True(t, tab.CommonRow(fnLo, &row) && !tab.CommonRow(fnHi, &row), "at the function's bounds")
	expect.True(t, !table(t, context.ArchARM64, frames).CommonRow(fnLo, &row), "of ARM64")
	var high asm // a step of the location wraps
	off := high.simpleCIE()
	high.begin()
	high.ciePtr(off).u64(^uint64(0xff)).u64(0x80).u8(DW_CFA_advance_loc4).u32(0x200).end().u32(0)
	if tab := table(t, context.ArchAMD64, high.b); tab.Len() != 1 || tab.CommonRow(^uint64(0xff), &row) {
		t.Errorf("at the end of all addresses, of %d functions", tab.Len())
	}
	for _, c := range []struct {
		name string
		code []byte
		want bool
	}{
		{"as long as it may be", make([]byte, maxCommonCode-24), true}, // padding to eight bytes
		{"longer", make([]byte, maxCommonCode+1), false},
		{"as deep as it may be", repeat(DW_CFA_remember_state, maxCommonDepth), true},
		{"deeper", repeat(DW_CFA_remember_state, maxCommonDepth+1), false},
	} {
		expect.Equal(t, table(t, context.ArchAMD64, ehFrame(c.code...)).CommonRow(fnLo, &row), c.want, c.name)
	}
}

func repeat(op byte, n int) (code []byte) {
	for range n {
		code = append(code, op)
	}
	return code
}
