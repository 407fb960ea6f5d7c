package inspect

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/regnum"

	"github.com/seedwalk/seedwalk/context"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestDisassemble(t *testing.T) {
	for _, c := range []struct {
		name string
		arch context.Arch
		code string
		want string // instructions, separated by "; "
	}{
		{"prolog", context.ArchAMD64, "554889e5", "push rbp; mov rbp, rsp"},
		{"endbr64", context.ArchAMD64, "f30f1efa90", "endbr64; nop"},
		{"vzeroupper", context.ArchAMD64, "c5f877c3", "(vex) c5f877; ret"},
		{"vex with sib and disp8", context.ArchAMD64, "c5fe6f44240890", "(vex) c5fe6f442408; nop"},
		{"vex3 with imm8", context.ArchAMD64, "c4e37d39c10190", "(vex) c4e37d39c101; nop"},
		{"evex", context.ArchAMD64, "62f1fe486f442401c3", "(vex) 62f1fe486f442401; ret"},
		{"unknown byte", context.ArchAMD64, "06c3", ".byte 0x06; ret"},
		{"cut", context.ArchAMD64, "48", ".byte 0x48"},
		{"cut vex", context.ArchAMD64, "c5fe", ".byte 0xc5; .byte 0xfe"},
		{"pac", context.ArchARM64, "3f2303d5c0035fd6", "paciasp; ret"},
		{"branch", context.ArchARM64, "02000014", "b 0x1008"},
		{"branch back", context.ArchARM64, "ffffff17", "b 0xffc"},
		{"undefined", context.ArchARM64, "00000000", ".word 0x00000000"},
		{"cut word", context.ArchARM64, "c003", ".byte c003"},
	} {
		code := must.Get(hex.DecodeString(c.code))(t)
		var got []string
		n := 0
		for _, in := range Disassemble(c.arch, 0x1000, code) {
			got = append(got, in.Text)
			n += len(in.Bytes)
		}
		if s := strings.Join(got, "; "); s != c.want || n != len(code) {
			t.Errorf("%s: %q of %d bytes, want %q", c.name, s, n, c.want)
		}
	}
}

func TestARM64Effect(t *testing.T) {
	for _, c := range []struct{ name, codes, cfa, saved string }{
		{"leaf", "e4", "sp+0", "return address in lr"},
		{"alloc", "02e4", "sp+32", "return address in lr"},
		{"frame record", "e181e4", "x29+16", "x29 [cfa-16], lr [cfa-8]"},
		{"save_next", "e6c882e4", "sp+0", "x21 [cfa+16], x22 [cfa+24], x23 [cfa+32], x24 [cfa+40], return address in lr"},
		{"signed", "81fce4", "sp+16", "x29 [cfa-16], lr [cfa-8], ra signed"},
		{"machine frame", "e9e4", "machine_frame at sp+0", ""},
		{"cut", "c8", "?", "truncated unwind code"},
	} {
		codes := must.Get(hex.DecodeString(c.codes))(t)
		if cfa, saved := ARM64Effect(codes); cfa != c.cfa || saved != c.saved {
			t.Errorf("%s: %q, %q; want %q, %q", c.name, cfa, saved, c.cfa, c.saved)
		}
	}
}

// Every operation that has a name has an effect that is printed, but those that
// describe no instruction of a prolog.
func TestEveryOperationHasAnEffect(t *testing.T) {
	for op := peamd64.Op(0); op.String() != "op?"; op++ {
		want := op != peamd64.UWOP_EPILOG && op != peamd64.UWOP_SPARE_CODE
		e := amd64Effect{base: "rsp"}
		if got := e.undo(&peamd64.Info{FrameReg: 5}, &peamd64.Code{Op: op, Operand: 8}); got != want {
			t.Errorf("%v: %v, want %v", op, got, want)
		}
	}
}

// Registers are called what Delve calls those of the same DWARF number.
func TestRegNames(t *testing.T) {
	theirs := strings.NewReplacer("rip", "ra", "v", "d") // the return address's column; the half that is kept
	for _, c := range []struct {
		arch context.Arch
		name func(uint64) string
		lo   uint16
		hi   uint16
	}{
		{context.ArchAMD64, regnum.AMD64ToName, 0, 32},
		{context.ArchARM64, regnum.ARM64ToName, 0, 31},
		{context.ArchARM64, regnum.ARM64ToName, 64, 95},
	} {
		for n := c.lo; n <= c.hi; n++ {
			want := theirs.Replace(strings.ToLower(c.name(uint64(n))))
			if got := RegName(c.arch, n); got != want {
				t.Errorf("%s %d: %q, Delve says %q", fmt.Sprint(c.arch), n, got, want)
			}
		}
	}
}
