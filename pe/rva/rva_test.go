package rva

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestBlocks(t *testing.T) {
	b := Sort([]Block{{0x20, []byte{9}}, {0x10, make([]byte, 0x20)}, {0x100, nil},
		{0xfffffffe, make([]byte, 8)}})
	for _, c := range []struct {
		name string
		rva  uint32
		n    int
		ok   bool
		tail int // bytes there are, of up to 64
	}{
		{"before all", 0xf, 1, false, 0},
		{"first byte", 0x10, 1, true, 0x20},
		{"all of a block", 0x10, 0x20, true, 0x20},
		{"past its end", 0x10, 0x21, false, 0x20},
		{"the later block holds", 0x20, 1, true, 1},
		{"the earlier one does not show behind it", 0x21, 1, false, 0},
		{"an empty block", 0x100, 0, true, 0},
		{"below 4 GiB", 0xfffffffe, 2, true, 2},
		{"across 4 GiB", 0xfffffffe, 3, false, 2},
		{"a negative number", 0x10, -1, false, 0x20},
	} {
		got, ok := b.Bytes(c.rva, c.n)
		if ok != c.ok || ok && len(got) != c.n || len(b.Tail(c.rva, 64)) != c.tail {
			t.Errorf("%s: %d bytes, %v, tail %d", c.name, len(got), ok, len(b.Tail(c.rva, 64)))
		}
	}
	expect.True(t, b.End() == 1<<32-1 && Blocks(nil).End() == 0, "end %#x", b.End())
}
