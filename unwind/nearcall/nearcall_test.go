package nearcall

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"golang.org/x/arch/arm64/arm64asm"
	"golang.org/x/arch/x86/x86asm"
)

// Every ModRM and SIB byte after every opcode of a call: this package must agree with the decoder of
// golang.org/x/arch.
func TestAMD64AllOperands(t *testing.T) {
	calls := 0
	for modrm := range 256 {
		for sib := range 256 {
			code := []byte{0xff, byte(modrm), byte(sib), 0, 0, 0, 0}
			in, err := x86asm.Decode(code, 64)
			want := err == nil && in.Op == x86asm.CALL
			if !want && sib == 0xe8 {
				continue // with the displacement it looks like a call rel32
			}
			if got := AMD64(code[:max(in.Len, 2)]); got != want {
				t.Fatalf("% x: %v, want %v: %v %v", code[:max(in.Len, 2)], got, want, in, err)
			}
			if !want {
				continue
			}
			calls++
			if in.Len > 2 && AMD64(code[:in.Len-1]) {
				t.Fatalf("% x: cut short it is still a call", code[:in.Len-1])
			}
			must.True(t, AMD64(append([]byte{0xcc, 0x41}, code[:in.Len]...)),
				"% x: not behind other bytes", code[:in.Len])
		}
	}
	expect.Equal(t, calls, 32*256, "calls")
}

func TestRelative(t *testing.T) {
	for _, c := range []struct {
		code []byte
		want uint64
	}{
		{[]byte{0xe8, 1, 2, 0, 0}, 0x1201},
		{[]byte{0x90, 0xe8, 0, 0xf0, 0xff, 0xff}, 0},
		{[]byte{0xe9, 1, 2, 0, 0}, 0xbad},
		{[]byte{1, 2, 0, 0}, 0xbad},
	} {
		to, ok := Relative(c.code, 0x1000)
		expect.True(t, ok == (c.want != 0xbad) && (!ok || to == c.want), "% x: %#x, %v", c.code, to, ok)
	}
}

func TestAMD64(t *testing.T) {
	for _, c := range []struct {
		name string
		code []byte
		want bool
	}{
		{"call rel32", []byte{0xe8, 1, 2, 3, 4}, true},
		{"call rel32 cut short", []byte{0xe8, 1, 2, 3}, false},
		{"call rax", []byte{0xff, 0xd0}, true},
		{"call r15", []byte{0x41, 0xff, 0xd7}, true},
		{"call [rax]", []byte{0xff, 0x10}, true},
		{"call [rsp]", []byte{0xff, 0x14, 0x24}, true},
		{"call [rbp+8]", []byte{0xff, 0x55, 8}, true},
		{"call [rsp+8]", []byte{0xff, 0x54, 0x24, 8}, true},
		{"call [rip+x]", []byte{0xff, 0x15, 1, 2, 3, 4}, true},
		{"call [rax+x]", []byte{0xff, 0x90, 1, 2, 3, 4}, true},
		{"call [rsp+x]", []byte{0xff, 0x94, 0x24, 1, 2, 3, 4}, true},
		{"call [x]", []byte{0xff, 0x14, 0x25, 1, 2, 3, 4}, true},
		{"call [rax*8+x]", []byte{0xff, 0x14, 0xc5, 1, 2, 3, 4}, true},
		{"call [x] cut short", []byte{0xff, 0x14, 0x25}, false},
		{"a ModRM byte alone", []byte{0xff, 0x14}, false},
		{"jmp rax", []byte{0xff, 0xe0}, false},
		{"far call", []byte{0xff, 0x18}, false},
		{"nothing", nil, false},
		{"one byte", []byte{0xff}, false},
	} {
		expect.Equal(t, AMD64(c.code), c.want, c.name)
	}
}

// Calls that golang.org/x/arch does not know.
var authenticated = map[string]uint32{"blraaz x3": 0xd63f087f, "blrabz x3": 0xd63f0c7f,
	"blraa x3, x7": 0xd73f0867, "blrab x3, sp": 0xd73f0c7f}

func TestARM64(t *testing.T) {
	check := func(w uint32) {
		in, err := arm64asm.Decode(binary.LittleEndian.AppendUint32(nil, w))
		want := err == nil && (in.Op == arm64asm.BL || in.Op == arm64asm.BLR)
		if got := ARM64(binary.LittleEndian.AppendUint32([]byte{1}, w)); got != want &&
			!(got && w&0xfefff800 == 0xd63f0800) {
			t.Fatalf("%#x: %v, want %v: %v", w, got, want, in)
		}
	}
	for top := range uint32(1 << 16) { // every encoding of the upper half, some lower halves
		for _, low := range []uint32{0, 0x1f, 0x20, 0x3e0, 0x3ff, 0x400, 0x800, 0xffff} {
			check(top<<16 | low)
		}
	}
	for low := range uint32(1 << 16) {
		check(0xd63f0000 | low)
		check(0xd61f0000 | low)
		check(0xd65f0000 | low)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		check(r.Uint32())
	}
	for name, w := range authenticated {
		expect.True(t, IsARM64(w), "%s is no call", name)
	}
	for name, w := range map[string]uint32{"braaz x3": 0xd61f087f,
		"blraaz with a register": 0xd63f0867, "ret": 0xd65f03c0} {
		expect.True(t, !IsARM64(w), "%s is a call", name)
	}
	expect.True(t, !ARM64([]byte{0, 0, 0}), "three bytes are a call")
}
