package contract

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Trees as .NET 9.0.5 stores them: a method without inlining, and a constructed tree of three levels.
func TestDecodeInlines(t *testing.T) {
	real := []byte{0x61, 0x70, 0x84, 0xa9, 0xdc, 0x00, 0x7f, 0x00, 0x00, 0x02, 0x90, 0x07, 0x24, 0x06, 0x99,
		0x24, 0x3b, 0x90, 0x02, 0x19, 0x90, 0x79, 0xe2, 0x04, 0xe9, 0x24, 0x0b, 0xc0, 0x23}
	method := uint64(0x7f00dca98470)
	for _, c := range []struct {
		name   string
		b      []byte
		native uint32
		want   []Inline
	}{
		{"before all code", real, 14, nil}, {"prolog", real, 15, []Inline{{method, 0}}},
		{"inside", real, 47, []Inline{{method, 38}}}, {"end", real, 1000, []Inline{{method, 45}}},
		{"root", nested(), 1, []Inline{{1, 5}}}, {"one level", nested(), 9, []Inline{{2, 7}, {1, 10}}},
		{"two levels", nested(), 19, []Inline{{3, 8}, {2, 11}, {1, 10}}},
		{"a sibling", nested(), 29, []Inline{{4, 9}, {1, 20}}},
	} {
		expect.Slices(t, DecodeInlines(c.b, c.native), c.want, c.name)
	}
}

// nested is a tree: method 1 inlines 2 at 10 and 4 at 20, and 2 inlines 3 at 11.
func nested() []byte {
	var n writer
	n.number(4)
	n.number(4)
	last := []int{-2, 0, 0}
	for i, node := range [][3]int{{-1, 1, 0}, {10, 2, 3}, {11, 0, 0}, {20, 0, 0}} {
		n.nibble(byte(i + 1))
		for range 15 {
			n.nibble(0)
		}
		for k, v := range node {
			n.signed(v - last[k])
			last[k] = v
		}
	}
	native, inlinee, il := 0, 0, -2
	for _, m := range [][3]int{{0, 0, 5}, {5, 1, 7}, {15, 2, 8}, {25, 3, 9}} {
		n.number(m[0] - native)
		n.signed(m[1] - inlinee)
		n.signed(m[2] - il)
		n.number(0)
		native, inlinee, il = m[0], m[1], m[2]
	}
	return n.b
}

// writer writes numbers as the runtime does, each in as many nibbles of three bits as it needs.
type writer struct {
	b    []byte
	half bool
}

func (w *writer) nibble(v byte) {
	if w.half = !w.half; w.half {
		w.b = append(w.b, v)
		return
	}
	w.b[len(w.b)-1] |= v << 4
}

func (w *writer) number(v int) {
	shift := 0
	for v>>shift > 7 {
		shift += 3
	}
	for ; shift > 0; shift -= 3 {
		w.nibble(byte(v>>shift&7) | 8)
	}
	w.nibble(byte(v & 7))
}

func (w *writer) signed(v int) {
	if v < 0 {
		w.number(-v<<1 | 1)
		return
	}
	w.number(v << 1)
}

// A truncated or modified tree is read without leaving its bounds.
func TestHostileInlines(t *testing.T) {
	good := nested()
	for n := range good {
		got := DecodeInlines(good[:n], 29)
		expect.True(t, got == nil, "%d bytes are enough for %v", n, got)
	}
	run := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		b := slices.Clone(good)
		for range 1 + run.IntN(4) {
			b[run.IntN(len(b))] = byte(run.Uint32())
		}
		got := DecodeInlines(b, run.Uint32N(64))
		must.True(t, len(got) <= 2*len(b), "%x: %v", b, got)
	}
}
