package memory

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

func bytes(n int, first byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = first + byte(i)
	}
	return b
}

func TestWord(t *testing.T) {
	w := New(Run{0x1000, bytes(64, 0)}, Run{0x2000, bytes(16, 100)}, Run{0x2010, bytes(8, 200)})
	for _, c := range []struct {
		name string
		addr uint64
		want uint64
		ok   bool
	}{
		{"first of the hot run", 0x1000, 0x0706050403020100, true},
		{"unaligned", 0x1001, 0x0807060504030201, true},
		{"last of the hot run", 0x1038, 0x3f3e3d3c3b3a3938, true},
		{"over its end", 0x1039, 0, false},
		{"before it", 0xfff, 0, false},
		{"another run", 0x2008, 0x737271706f6e6d6c, true},
		{"over two runs that touch", 0x200c, 0, false},
		{"the last run", 0x2010, 0xcfcecdcccbcac9c8, true},
		{"nowhere", 0x9000, 0, false},
		{"end of the address space", ^uint64(0), 0, false},
		{"wraps", ^uint64(3), 0, false},
	} {
		v, ok := w.Word(c.addr)
		expect.True(t, v == c.want && ok == c.ok, "%s: %#x %v, want %#x %v", c.name, v, ok, c.want, c.ok)
	}
}

// The run of a word is the one that it is read from.
func TestRun(t *testing.T) {
	w := New(Run{0x1000, bytes(64, 0)}, Run{0x2000, bytes(16, 100)}, Run{0x2010, bytes(8, 200)})
	for _, c := range []struct{ addr, run uint64 }{
		{0x1000, 0x1000}, {0x1038, 0x1000}, {0x1039, 0}, {0xfff, 0}, {0x2008, 0x2000}, {0x2009, 0},
		{0x2010, 0x2010}, {0x2018, 0}, {^uint64(3), 0},
	} {
		if r, ok := w.Run(c.addr); r.Addr != c.run || ok != (c.run != 0) || ok && len(r.Data) == 0 {
			t.Errorf("%#x: %#x %v, want %#x", c.addr, r.Addr, ok, c.run)
		}
	}
}

func TestEdges(t *testing.T) {
	var empty Window
	_, ok := empty.Word(0)
	expect.True(t, !ok, "the zero window has a word")
	_, ok = New(Run{0x1000, bytes(4, 0)}).Word(0x1000)
	expect.True(t, !ok, "a run of four bytes has a word")
	top := New(Run{^uint64(0) - 7, bytes(64, 0)}) // would wrap: cut
	_, ok = top.Word(0)
	expect.True(t, !ok, "a run wrapped around the address space")
	_, ok = top.Bytes(^uint64(0)-7, 4)
	expect.True(t, ok, "what lies before the end is lost")
	_, ok = top.Bytes(0x1000, -1)
	expect.True(t, !ok, "a negative length was read")
}

func TestBytesAreTheRunsOwn(t *testing.T) {
	data := bytes(32, 0)
	w := New(Run{0x1000, data})
	b, ok := w.Bytes(0x1008, 8)
	expect.True(t, ok && &b[0] == &data[8] && cap(b) == 8,
		"%v, capacity %d: a copy, or more than was asked for", ok, cap(b))
}

func TestResetForgets(t *testing.T) {
	w := New(Run{0x1000, bytes(64, 0)}, Run{0x2000, bytes(16, 0)})
	w.Reset(0x3000, bytes(8, 1))
	for _, addr := range []uint64{0x1000, 0x2000} {
		_, ok := w.Word(addr)
		expect.True(t, !ok, "%#x is still readable", addr)
	}
	v, ok := w.Word(0x3000)
	expect.True(t, ok && v == 0x0807060504030201, "%#x %v", v, ok)
	data := bytes(64, 0)
	n := testing.AllocsPerRun(100,
		func() { w.Reset(0x1000, data); w.Word(0x1010); w.Bytes(0x1010, 4) })
	expect.True(t, n == 0, "%v allocations", n)
}
