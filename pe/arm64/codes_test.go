package arm64_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

const none = arm64.NoRegister

// Every code, by hand from Microsoft's table: the smallest and the largest
// operand where it has one.
var codeCases = []struct {
	name  string
	bytes []byte
	want  arm64.Code
}{
	{"alloc_s 0", []byte{0x00}, arm64.Code{Op: arm64.AllocS, Size: 1, Reg2: none}},
	{"alloc_s 496", []byte{0x1f}, arm64.Code{Op: arm64.AllocS, Size: 1, Reg2: none, Off: 496}},
	{"save_r19r20_x 248", []byte{0x3f},
		arm64.Code{Op: arm64.SaveR19R20X, Size: 1, Saves: true, Pre: true, Reg: 19, Reg2: 20, Off: 248}},
	{"save_fplr 504", []byte{0x7f},
		arm64.Code{Op: arm64.SaveFPLR, Size: 1, Saves: true, Reg: 29, Reg2: 30, Off: 504}},
	{"save_fplr_x 8", []byte{0x80},
		arm64.Code{Op: arm64.SaveFPLRX, Size: 1, Saves: true, Pre: true, Reg: 29, Reg2: 30, Off: 8}},
	{"save_fplr_x 512", []byte{0xbf},
		arm64.Code{Op: arm64.SaveFPLRX, Size: 1, Saves: true, Pre: true, Reg: 29, Reg2: 30, Off: 512}},
	{"alloc_m 32752", []byte{0xc7, 0xff}, arm64.Code{Op: arm64.AllocM, Size: 2, Reg2: none, Off: 32752}},
	{"save_regp x19 504", []byte{0xc8, 0x3f},
		arm64.Code{Op: arm64.SaveRegP, Size: 2, Saves: true, Reg: 19, Reg2: 20, Off: 504}},
	{"save_regp x29 0", []byte{0xca, 0x80},
		arm64.Code{Op: arm64.SaveRegP, Size: 2, Saves: true, Reg: 29, Reg2: 30}},
	{"save_regp_x x21 16", []byte{0xcc, 0x81},
		arm64.Code{Op: arm64.SaveRegPX, Size: 2, Saves: true, Pre: true, Reg: 21, Reg2: 22, Off: 16}},
	{"save_reg x30 8", []byte{0xd2, 0xc1},
		arm64.Code{Op: arm64.SaveReg, Size: 2, Saves: true, Reg: 30, Reg2: none, Off: 8}},
	{"save_reg_x x30 256", []byte{0xd5, 0x7f},
		arm64.Code{Op: arm64.SaveRegX, Size: 2, Saves: true, Pre: true, Reg: 30, Reg2: none, Off: 256}},
	{"save_reg_x x19 8", []byte{0xd4, 0x00},
		arm64.Code{Op: arm64.SaveRegX, Size: 2, Saves: true, Pre: true, Reg: 19, Reg2: none, Off: 8}},
	{"save_lrpair x21 16", []byte{0xd6, 0x42},
		arm64.Code{Op: arm64.SaveLRPair, Size: 2, Saves: true, Reg: 21, Reg2: 30, Off: 16}},
	{"save_lrpair x27 0", []byte{0xd7, 0x00},
		arm64.Code{Op: arm64.SaveLRPair, Size: 2, Saves: true, Reg: 27, Reg2: 30}},
	{"save_fregp d14 504", []byte{0xd9, 0xbf},
		arm64.Code{Op: arm64.SaveFRegP, Size: 2, Saves: true, Vector: true, Reg: 14, Reg2: 15, Off: 504}},
	{"save_fregp_x d8 64", []byte{0xda, 0x07},
		arm64.Code{Op: arm64.SaveFRegPX, Size: 2, Saves: true, Vector: true,
			Pre: true, Reg: 8, Reg2: 9, Off: 64}},
	{"save_freg d10 40", []byte{0xdc, 0x85},
		arm64.Code{Op: arm64.SaveFReg, Size: 2, Saves: true, Vector: true, Reg: 10, Reg2: none, Off: 40}},
	{"save_freg_x d15 256", []byte{0xde, 0xff},
		arm64.Code{Op: arm64.SaveFRegX, Size: 2, Saves: true, Vector: true, Pre: true,
			Reg: 15, Reg2: none, Off: 256}},
	{"alloc_l", []byte{0xe0, 0x01, 0x02, 0x03},
		arm64.Code{Op: arm64.AllocL, Size: 4, Reg2: none, Off: 0x10203 * 16}},
	{"set_fp", []byte{0xe1}, arm64.Code{Op: arm64.SetFP, Size: 1, Reg2: none}},
	{"add_fp 2040", []byte{0xe2, 0xff}, arm64.Code{Op: arm64.AddFP, Size: 2, Reg2: none, Off: 2040}},
	{"nop", []byte{0xe3}, arm64.Code{Op: arm64.Nop, Size: 1, Reg2: none}},
	{"end", []byte{0xe4}, arm64.Code{Op: arm64.End, Size: 1, Reg2: none}},
	{"end_c", []byte{0xe5}, arm64.Code{Op: arm64.EndC, Size: 1, Reg2: none}},
	{"save_next", []byte{0xe6}, arm64.Code{Op: arm64.SaveNext, Size: 1, Reg2: none}},
	{"save_any_reg x27", []byte{0xe7, 0x1b, 0x0b},
		arm64.Code{Op: arm64.SaveAnyReg, Size: 3, Saves: true, Reg: 27, Reg2: none, Off: 88}},
	{"save_any_reg x19 pair", []byte{0xe7, 0x53, 0x04},
		arm64.Code{Op: arm64.SaveAnyReg, Size: 3, Saves: true, Reg: 19, Reg2: 20, Off: 64}},
	{"save_any_reg d11", []byte{0xe7, 0x0b, 0x55},
		arm64.Code{Op: arm64.SaveAnyReg, Size: 3, Saves: true, Vector: true, Reg: 11, Reg2: none, Off: 168}},
	{"save_any_reg q12 pre", []byte{0xe7, 0x2c, 0x81},
		arm64.Code{Op: arm64.SaveAnyReg, Size: 3, Saves: true, Vector: true, Quad: true, Pre: true,
			Reg: 12, Reg2: none, Off: 32}},
	{"save_any_reg q8 pair", []byte{0xe7, 0x48, 0x88},
		arm64.Code{Op: arm64.SaveAnyReg, Size: 3, Saves: true, Vector: true,
			Quad: true, Reg: 8, Reg2: 9, Off: 128}},
	{"machine_frame", []byte{0xe9}, arm64.Code{Op: arm64.MachineFrame, Size: 1, Reg2: none}},
	{"context", []byte{0xea}, arm64.Code{Op: arm64.Context, Size: 1, Reg2: none}},
	{"ec_context", []byte{0xeb}, arm64.Code{Op: arm64.ECContext, Size: 1, Reg2: none}},
	{"clear_unwound_to_call", []byte{0xec}, arm64.Code{Op: arm64.ClearUnwoundToCall, Size: 1, Reg2: none}},
	{"pac_sign_lr", []byte{0xfc}, arm64.Code{Op: arm64.PACSignLR, Size: 1, Reg2: none}},
}

func TestCodes(t *testing.T) {
	for _, c := range codeCases {
		t.Run(c.name, func(t *testing.T) {
			got, reason := arm64.DecodeCode(append(c.bytes[:len(c.bytes):len(c.bytes)], 0xe4))
			expect.True(t, reason == arm64.OK && got == c.want, "got %+v, %v", got, reason)
			expect.True(t, strings.HasPrefix(c.name, got.Op.String()), "named %s", got.Op)
			for n := range len(c.bytes) {
				_, reason := arm64.DecodeCode(c.bytes[:n])
				want := arm64.Truncated
				if n == 0 {
					want = arm64.NoEnd
				}
				expect.Equal(t, reason, want, "cut to %d bytes", n)
			}
		})
	}
}

func TestCodesRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes []byte
		want  arm64.Reason
		size  uint8
	}{
		{"alloc_z", []byte{0xdf, 1}, arm64.AllocZ, 2},
		{"save_zreg", []byte{0xe7, 0x05, 0xc1}, arm64.SaveSVE, 3},
		{"save_preg", []byte{0xe7, 0x15, 0xc1}, arm64.SaveSVE, 3},
		{"trap_frame", []byte{0xe8}, arm64.TrapFrame, 1},
		{"save_any_reg with bit 7", []byte{0xe7, 0x80, 0}, arm64.BadCode, 3},
		{"save_any_reg x31", []byte{0xe7, 0x1f, 0}, arm64.BadRegisters, 3},
		{"save_any_reg x30 pair", []byte{0xe7, 0x5e, 0}, arm64.BadRegisters, 3},
		{"save_any_reg d31 pair", []byte{0xe7, 0x5f, 0x40}, arm64.BadRegisters, 3},
		{"save_regp x30", []byte{0xca, 0xc0}, arm64.BadRegisters, 2},
		{"save_reg x31", []byte{0xd3, 0x00}, arm64.BadRegisters, 2},
		{"save_lrpair x31", []byte{0xd7, 0x80}, arm64.BadRegisters, 2},
		{"reserved ed", []byte{0xed}, arm64.BadCode, 1},
		{"reserved f7", []byte{0xf7}, arm64.BadCode, 1},
		{"reserved f8", []byte{0xf8, 0}, arm64.BadCode, 2},
		{"reserved f9", []byte{0xf9, 0, 0}, arm64.BadCode, 3},
		{"reserved fa", []byte{0xfa, 0, 0, 0}, arm64.BadCode, 4},
		{"reserved fb", []byte{0xfb, 0, 0, 0, 0}, arm64.BadCode, 5},
		{"reserved ff", []byte{0xff}, arm64.BadCode, 1},
	} {
		got, reason := arm64.DecodeCode(c.bytes)
		expect.True(t, reason == c.want && got.Size == c.size, "%s: %v, size %d", c.name, reason, got.Size)
	}
}

// record builds an .xdata record: header words, scopes, codes.
func record(words []uint32, codes ...byte) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return append(b, codes...)
}

func TestPositions(t *testing.T) {
	const set, fplr = 0xe1, 0x81
	scopes := record([]uint32{20 | 2<<22 | 1<<27, 8, 16 | 1<<22}, set, fplr, 0xe4, 0xe4)
	packedEnd := record([]uint32{20 | 1<<21 | 1<<22 | 1<<27}, set, fplr, 0xe4, 0xe4)
	extended := record([]uint32{20, 1 | 1<<16, 16 | 1<<22}, set, fplr, 0xe4, 0xe4)
	fragment := record([]uint32{20 | 1<<22 | 1<<27, 16 | 2<<22}, 0xe5, set, fplr, 0xe4)
	for _, c := range []struct {
		name   string
		record []byte
		ins    uint32
		where  arm64.Where
		codes  string
	}{
		{"first instruction", scopes, 0, arm64.Prolog, "\xe4\xe4"},
		{"second instruction", scopes, 1, arm64.Prolog, "\x81\xe4\xe4"},
		{"body", scopes, 2, arm64.Body, "\xe1\x81\xe4\xe4"},
		{"first scope", scopes, 8, arm64.Epilog, "\xe1\x81\xe4\xe4"},
		{"its second instruction", scopes, 9, arm64.Epilog, "\x81\xe4\xe4"},
		{"its return", scopes, 10, arm64.Epilog, "\xe4\xe4"},
		{"between the scopes", scopes, 11, arm64.Body, "\xe1\x81\xe4\xe4"},
		{"second scope", scopes, 16, arm64.Epilog, "\x81\xe4\xe4"},
		{"its return", scopes, 17, arm64.Epilog, "\xe4\xe4"},
		{"behind it", scopes, 18, arm64.Body, "\xe1\x81\xe4\xe4"},
		{"E: before", packedEnd, 17, arm64.Body, "\xe1\x81\xe4\xe4"},
		{"E: epilog", packedEnd, 18, arm64.Epilog, "\x81\xe4\xe4"},
		{"E: return", packedEnd, 19, arm64.Epilog, "\xe4\xe4"},
		{"extended", extended, 17, arm64.Epilog, "\xe4\xe4"},
		{"fragment's first", fragment, 0, arm64.Body, "\xe5\xe1\x81\xe4"},
		{"fragment's epilog", fragment, 17, arm64.Epilog, "\xe4"},
	} {
		i, fault := arm64.DecodeXdata(c.record)
		must.True(t, fault.OK(), "%v %v", c.name, fault)
		codes, where, fault := i.At(4 * c.ins)
		expect.True(t, fault.OK() && where == c.where && string(codes) == c.codes,
			"%s: %v %x %v", c.name, where, codes, fault)
	}
}

func TestRecordsRefused(t *testing.T) {
	codes := []byte{0xe1, 0x81, 0xe4, 0xe4}
	for _, c := range []struct {
		name   string
		record []byte
		ins    uint32
		want   arm64.Reason
	}{
		{"empty", nil, 0, arm64.BadRecord},
		{"half a header", record([]uint32{0x10})[:3], 0, arm64.BadRecord},
		{"no second header word", record([]uint32{0x10}), 0, arm64.BadRecord},
		{"version 1", record([]uint32{8 | 1<<18 | 1<<27}, codes...), 0, arm64.BadVersion},
		{"scopes cut", record([]uint32{8 | 2<<22 | 1<<27, 8}), 0, arm64.BadRecord},
		{"codes cut", record([]uint32{8 | 1<<21 | 1<<27}, codes[:3]...), 0, arm64.BadRecord},
		{"handler cut", record([]uint32{8 | 1<<20 | 1<<21 | 1<<27}, codes...), 0, arm64.BadRecord},
		{"outside", record([]uint32{8 | 1<<21 | 1<<27}, codes...), 8, arm64.Outside},
		{"length 0", record([]uint32{1<<21 | 1<<27}, codes...), 0, arm64.Outside},
		{"no end", record([]uint32{8 | 1<<21 | 1<<27}, 0xe3, 0xe3, 0xe3, 0xe3), 5, arm64.NoEnd},
		{"no codes", record([]uint32{8, 0}), 5, arm64.NoEnd},
		{"E index outside", record([]uint32{8 | 1<<21 | 9<<22 | 1<<27}, codes...), 5, arm64.BadEpilogIndex},
		{"E longer than the function",
			record([]uint32{3 | 1<<21 | 1<<22 | 2<<27}, 0xe4, 0xe3, 0xe3, 0xe3, 0xe3, 0xe3, 0xe3, 0xe4), 1,
			arm64.BadEpilogOffset},
		{"scope index outside", record([]uint32{8 | 1<<22 | 1<<27, 4 | 9<<22}, codes...), 5,
			arm64.BadEpilogIndex},
		{"save_next run", record([]uint32{40 | 1<<21 | 2<<27}, 0xe6, 0xe6, 0xe6, 0xe6, 0xe6, 0xe6, 0x81,
			0xe4), 30, arm64.BadRegisters},
	} {
		i, fault := arm64.DecodeXdata(c.record)
		if fault.OK() {
			_, _, fault = i.At(4 * c.ins)
		}
		expect.Equal(t, fault.Reason, c.want, c.name)
		var e *arm64.Error
		err := fault.Err("xdata", 0x2000)
		expect.True(t, errors.As(err, &e) && e.RVA == 0x2000 &&
			strings.Contains(err.Error(), c.want.String()), "%s: error %v", c.name, err)
	}
}

func TestXdataSizes(t *testing.T) {
	for _, c := range []struct {
		name   string
		record []byte
		want   int
	}{
		{"E", record([]uint32{8 | 1<<21 | 5<<22 | 2<<27}), 4 + 8},
		{"scopes", record([]uint32{8 | 5<<22 | 2<<27}), 4 + 20 + 8},
		{"handler", record([]uint32{8 | 1<<20 | 5<<22 | 2<<27}), 4 + 20 + 8 + 4},
		{"extended", record([]uint32{8, 0xffff | 0xff<<16}), 8 + 4*0xffff + 4*0xff},
	} {
		n, fault := arm64.XdataSize(c.record)
		expect.True(t, n == c.want && fault.OK(), "%s: %d, %v", c.name, n, fault)
	}
}

func TestPackedRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		word uint32
		want arm64.Reason
	}{
		{"flag 0", 0x100, arm64.BadFlag},
		{"flag 3", 0x103, arm64.BadFlag},
		{"RegI 11", 1 | 11<<16 | 10<<23, arm64.BadRegI},
		{"negative local area", 1 | 4<<16 | 1<<23, arm64.BadFrameSize},
		{"no room for the frame record", 1 | 2<<16 | 3<<21 | 1<<23, arm64.BadFrameSize},
		{"no room for homed registers", 1 | 1<<20 | 3<<23, arm64.BadFrameSize},
	} {
		var buf arm64.Buffer
		_, fault := arm64.DecodePackedInfo(c.word, &buf)
		expect.True(t, fault.Reason == c.want, "%s: %v", c.name, fault.Reason)
	}
}

// Every packed word either is refused or expands to codes that end, whose
// effect is the frame it declares.
func TestPackedAll(t *testing.T) {
	words := 0
	for low := range uint32(1 << 13) { // RegF, RegI, H, CR and three bits of frame size
		for _, size := range []uint32{0, 8, 64, 272, 504} {
			w := 1 | 0x7ff<<2 | (low&0x3ff)<<13 | (low>>10+size)<<23
			var buf arm64.Buffer
			i, fault := arm64.DecodePackedInfo(w, &buf)
			if !fault.OK() {
				continue
			}
			words++
			must.Equal(t, frameOf(t, &i, 0), i.Packed.FrameSize, "%#x: bytes that the prolog makes", w)
			must.Equal(t, frameOf(t, &i, i.Epilogs), i.Packed.FrameSize,
				"%#x: bytes that the epilog frees", w)
		}
	}
	expect.True(t, words >= 10000, "only %d words", words)
}

func frameOf(t *testing.T, i *arm64.Info, index uint32) (n uint32) {
	t.Helper()
	for b := i.Codes[index:]; ; {
		c, reason := arm64.DecodeCode(b)
		must.Equal(t, reason, arm64.OK, "%x", i.Codes)
		if c.Last() {
			return n
		}
		if c.Pre || c.Op <= arm64.AllocM && !c.Saves {
			n += c.Off
		}
		b = b[c.Size:]
	}
}

func TestIndex(t *testing.T) {
	pdata := record([]uint32{0x1000, 1, 0x1040, 5, 0x2000, 9})
	table := arm64.New(pdata, nil)
	for _, c := range []struct {
		rva  uint32
		want int
	}{{0, -1}, {0xfff, -1}, {0x1000, 0}, {0x103f, 0}, {0x1040, 1}, {0x1fff, 1},
		{0x2000, 2}, {0xffffffff, 2}} {
		expect.Equal(t, table.Index(c.rva), c.want, "%#x", c.rva)
	}
	f := table.Entry(1)
	expect.True(t, f.Begin == 0x1040 && f.Data == 5 && f.Packed(), "entry 1: %+v", f)
	table = arm64.New(pdata[:7], nil)
	expect.Equal(t, table.Index(0x1000), -1, "found an entry in a table cut short")
}

func TestDecodeAllocs(t *testing.T) {
	xdata := record([]uint32{20 | 1<<21 | 1<<22 | 1<<27}, 0xe1, 0x81, 0xe4, 0xe4)
	var buf arm64.Buffer
	n := testing.AllocsPerRun(100, func() {
		i, _ := arm64.DecodePackedInfo(0x7486085, &buf)
		i.At(40)
		j, _ := arm64.DecodeXdata(xdata)
		j.At(76)
	})
	expect.True(t, n == 0, "%v allocations", n)
}

// Epilogs whose codes run to the end of all codes are real (MSVC's runtime
// library); prologs without an end are not.
func TestUnendedEpilog(t *testing.T) {
	for _, c := range []struct {
		name   string
		record []byte
		offset uint32
		want   arm64.Reason
		where  arm64.Where
		codes  int // bytes
	}{
		{"epilog without end", []byte{5, 0, 0x40, 0x08, 4, 0, 0x40, 0, 0xe4, 0xe3, 0, 0},
			16, arm64.OK, arm64.Epilog, 3},
		{"body of the same", []byte{5, 0, 0x40, 0x08, 4, 0, 0x40, 0, 0xe4, 0xe3, 0, 0}, 12, arm64.OK,
			arm64.Body, 4},
		{"prolog without end", []byte{5, 0, 0, 0x08, 0xe3, 0xe3, 0xe3, 0xe3}, 16, arm64.NoEnd, arm64.Body, 0},
		{"epilog that is the prolog, without end",
			[]byte{5, 0, 0x40, 0x08, 4, 0, 0, 0, 0xe3, 0xe3, 0xe3, 0xe3}, 16, arm64.NoEnd, arm64.Body, 0},
		{"last code cut", []byte{5, 0, 0x40, 0x08, 4, 0, 0x40, 0, 0xe4, 0xe3, 0xe3, 0xc8}, 16,
			arm64.NoEnd, arm64.Epilog, 0},
		{"save_next before the end", []byte{5, 0, 0x40, 0x08, 4, 0, 0x40, 0, 0xe4, 0xe3, 0xe3, 0xe6}, 16,
			arm64.NoEnd, arm64.Epilog, 0},
	} {
		info, fault := arm64.DecodeXdata(c.record)
		must.True(t, fault.OK(), "%v %v", c.name, fault)
		codes, where, fault := info.At(c.offset)
		expect.True(t, fault.Reason == c.want && where == c.where && len(codes) == c.codes,
			"%s: %v, %s, %d bytes of codes", c.name, fault, where, len(codes))
	}
}

// A frame is at least what its prolog has allocated: stp x29, x30, [sp, #-16]!; mov x29, sp; sub sp, sp, #32.
func TestLeastFrame(t *testing.T) {
	codes := []byte{0x02, 0xe1, 0x81, 0xe4}
	for _, c := range []struct {
		name   string
		info   arm64.Info
		offset uint32
		want   uint64
	}{
		{"in its body", arm64.Info{Length: 0x40, Codes: codes}, 0x20, 48},
		{"in its prolog", arm64.Info{Length: 0x40, Codes: codes}, 8, 0},
		{"in its epilog", arm64.Info{Length: 0x40, Codes: codes, E: true}, 0x38, 0},
		{"behind it", arm64.Info{Length: 0x40, Codes: codes}, 0x40, 0},
		{"without an end", arm64.Info{Length: 0x40, Codes: codes[:3]}, 0x20, 0},
	} {
		expect.Equal(t, c.info.LeastFrame(c.offset), c.want, c.name)
	}
}
