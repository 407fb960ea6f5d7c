package inspect

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context"
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
		code, err := hex.DecodeString(c.code)
		if err != nil {
			t.Fatal(err)
		}
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
		codes, err := hex.DecodeString(c.codes)
		if err != nil {
			t.Fatal(err)
		}
		if cfa, saved := ARM64Effect(codes); cfa != c.cfa || saved != c.saved {
			t.Errorf("%s: %q, %q; want %q, %q", c.name, cfa, saved, c.cfa, c.saved)
		}
	}
}
