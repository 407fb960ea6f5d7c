package inspect

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/seedwalk/seedwalk/context"
	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"
)

// Instr is one disassembled instruction.
type Instr struct {
	Addr  uint64
	Bytes []byte
	Text  string
}

// Disassemble decodes all of code, whose first byte is at addr. It shows unknown instructions as
// bytes, and continues after them.
func Disassemble(arch context.Arch, addr uint64, code []byte) []Instr {
	var out []Instr
	for len(code) > 0 {
		n, text := decode(arch, addr, code)
		out = append(out, Instr{addr, code[:n:n], text})
		addr, code = addr+uint64(n), code[n:]
	}
	return out
}

func decode(arch context.Arch, addr uint64, code []byte) (int, string) {
	if arch == context.ArchARM64 {
		return decodeARM64(addr, code)
	}
	return decodeAMD64(addr, code)
}

// decodeAMD64 writes Intel syntax, the one Microsoft's unwind documents use.
func decodeAMD64(addr uint64, code []byte) (int, string) {
	if len(code) >= 4 && code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa {
		return 4, "endbr64"
	}
	if n := vexLength(code); n > 0 {
		return n, "(vex) " + hex.EncodeToString(code[:n])
	}
	in, err := x86asm.Decode(code, 64)
	if err != nil || in.Op == 0 || in.Len <= 0 || in.Len > len(code) {
		return 1, fmt.Sprintf(".byte 0x%02x", code[0])
	}
	return in.Len, x86asm.IntelSyntax(in, addr, nil)
}

// vexLength returns the length of a VEX or EVEX instruction (Intel SDM volume 2, 2.3). It returns 0
// if code does not begin with one, or ends inside it. The disassembler does not know these
// instructions. Without their length, it would decode the following code at wrong places.
func vexLength(code []byte) int {
	prefix, opmap := 0, byte(1)
	switch {
	case len(code) > 3 && code[0] == 0xc5:
		prefix = 2
	case len(code) > 4 && code[0] == 0xc4:
		prefix, opmap = 3, code[1]&31
	case len(code) > 5 && code[0] == 0x62:
		prefix, opmap = 4, code[1]&7
	default:
		return 0
	}
	op := code[prefix]
	n := prefix + 1
	if opmap == 1 && op == 0x77 && prefix < 4 { // vzeroupper, vzeroall: no operands
		return n
	}
	n += modrmLength(code[n:])
	if opmap == 3 || opmap == 1 && (op >= 0x70 && op <= 0x73 || op == 0xc2 || op >= 0xc4 && op <= 0xc6) {
		n++
	}
	if n > len(code) {
		return 0
	}
	return n
}

// modrmLength is the size of a ModRM byte with its SIB byte and displacement.
func modrmLength(b []byte) int {
	mod, rm, n := b[0]>>6, b[0]&7, 1
	if mod == 3 {
		return 1
	}
	if rm == 4 {
		n++
		if len(b) > 1 && b[1]&7 == 5 && mod == 0 {
			return n + 4
		}
	}
	switch {
	case mod == 1:
		return n + 1
	case mod == 2 || mod == 0 && rm == 5:
		return n + 4
	}
	return n
}

// hints are the pointer authentication and branch target hints, which the
// disassembler only numbers.
var hints = map[uint32]string{
	0xd503233f: "paciasp", 0xd503237f: "pacibsp", 0xd50323bf: "autiasp", 0xd50323ff: "autibsp",
	0xd503245f: "bti c", 0xd503249f: "bti j", 0xd50324df: "bti jc", 0xd503241f: "bti",
	0xd65f0bff: "retaa", 0xd65f0fff: "retab", 0xd50320ff: "xpaclri",
}

func decodeARM64(addr uint64, code []byte) (int, string) {
	if len(code) < 4 {
		return len(code), ".byte " + hex.EncodeToString(code)
	}
	w := binary.LittleEndian.Uint32(code)
	if text, ok := hints[w]; ok {
		return 4, text
	}
	in, err := arm64asm.Decode(code[:4])
	if err != nil {
		return 4, fmt.Sprintf(".word 0x%08x", w)
	}
	text := strings.ToLower(arm64asm.GNUSyntax(in))
	if i := strings.LastIndex(text, ".+0x"); i >= 0 {
		text = target(text, i, addr)
	}
	return 4, text
}

// target turns a relative branch target, ".+0x" and a number, into an address.
func target(text string, at int, addr uint64) string {
	d, err := strconv.ParseUint(text[at+len(".+0x"):], 16, 64)
	if err != nil {
		return text
	}
	return fmt.Sprintf("%s0x%x", text[:at], addr+d)
}
