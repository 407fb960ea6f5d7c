package metadata

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestIL(t *testing.T) {
	fat := func(flags byte, size uint32) []byte {
		return binary.LittleEndian.AppendUint32([]byte{flags, 0x30, 8, 0}, size)
	}
	for _, c := range []struct {
		name         string
		b            []byte
		header, size int
		ok           bool
	}{
		{"nothing", nil, 0, 0, false},
		{"tiny", []byte{5<<2 | 2}, 1, 5, true},
		{"fat", append(fat(0x13, 300), 0, 0, 0, 0), 12, 300, true},
		{"cut", fat(0x13, 300), 0, 0, false},
		{"too large", append(fat(0x13, maxIL+1), 0, 0, 0, 0), 12, maxIL + 1, false},
		{"neither", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, false},
	} {
		header, size, ok := IL(c.b)
		expect.True(t, ok == c.ok && (!ok || header == c.header && size == c.size),
			"%s: %d, %d, %v", c.name, header, size, ok)
	}
}

// Calls finds a call after operands of every kind. It takes no part of an operand for a call.
func TestCalls(t *testing.T) {
	m := must.Get(Parse(sample()))(t) // method 3 is Run, 4 is Deep
	for _, c := range []struct {
		name string
		il   []byte
		want bool
	}{
		{"call", []byte{0x02, 0x28, 3, 0, 0, 6, 0x2a}, true},
		{"callvirt", []byte{0x6f, 3, 0, 0, 6}, true},
		{"newobj", []byte{0x73, 3, 0, 0, 6}, true},
		{"jmp", []byte{0x27, 3, 0, 0, 6}, true},
		{"another method", []byte{0x28, 4, 0, 0, 6}, false},
		{"no method", []byte{0x28, 99, 0, 0, 6, 0x28, 3, 0, 0, 1}, false},
		{"calli", []byte{0x29, 3, 0, 0, 6}, false},
		{"after a constant", []byte{0x21, 0, 1, 2, 3, 4, 5, 6, 7, 0x28, 3, 0, 0, 6}, true},
		{"inside a constant", []byte{0x21, 0x28, 3, 0, 0, 6, 5, 6, 7}, false},
		{"after a prefix", []byte{0xfe, 0x16, 0x28, 0, 0, 2, 0x6f, 3, 0, 0, 6}, true},
		{"after a switch", []byte{0x45, 1, 0, 0, 0, 0x28, 3, 0, 0, 0x28, 3, 0, 0, 6}, true},
		{"inside a switch", []byte{0x45, 2, 0, 0, 0, 0x28, 3, 0, 0, 6, 0, 0, 0}, false},
		{"a switch without end", []byte{0x45, 255, 255, 255, 255, 0x28, 3, 0, 0, 6}, false},
		{"cut", []byte{0x28, 3, 0, 0}, false}, {"a cut prefix", []byte{0xfe}, false},
	} {
		expect.Equal(t, m.Calls(c.il, "Run"), c.want, c.name)
	}
}
