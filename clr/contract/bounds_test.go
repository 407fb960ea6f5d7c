package contract

import (
	"slices"
	"testing"
)

// nib packs nibbles, the low one of a byte first.
func nib(n ...byte) []byte {
	out := make([]byte, (len(n)+1)/2)
	for i, v := range n {
		out[i/2] |= v << (4 * (i & 1))
	}
	return out
}

// The worked examples in the contract's description (DebugInfo.md; its 64 should be 120).
func TestNibbles(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want uint32
	}{
		{[]byte{0x00}, 0}, {[]byte{0x07}, 7}, {[]byte{0x09}, 8}, {[]byte{0x19}, 9}, {[]byte{0x7f}, 63},
		{[]byte{0x89, 0x00}, 64}, {[]byte{0xff, 0x07}, 511}, {[]byte{0x89, 0x08}, 512}, {[]byte{0x89, 0x18}, 513},
	} {
		n := nibbles{b: c.b}
		if got := n.number(); got != c.want || n.bad {
			t.Errorf("%x: %d %v, want %d", c.b, got, n.bad, c.want)
		}
	}
	n := nibbles{b: slices.Repeat([]byte{0xff}, 9)}
	if n.number(); !n.bad {
		t.Error("a number without an end is read")
	}
}

// The same boundaries as .NET 9 and .NET 10 write them.
func TestBounds(t *testing.T) {
	want := []Bound{{0, Prolog, false}, {5, 0, false}, {5, 3, true}, {21, 9, false}, {40, Epilog, false}}
	// count; delta, IL+3, source each
	plain := nib(5, 0, 1, 1, 5, 3, 1, 0, 6, 2, 8|2, 0, 8|1, 4, 1, 8|2, 3, 0, 1)
	// count, bits of deltas less 1, bits of IL less 1; then 2 + 5 + 4 bits each
	var bits uint64
	for i, b := range [][3]uint64{{2, 0, 1}, {2, 5, 3}, {1, 0, 6}, {2, 16, 12}, {2, 19, 0}} {
		bits |= (b[0] | b[1]<<2 | b[2]<<7) << (11 * i)
	}
	packed := append(nib(5, 4, 3), byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24), byte(bits>>32), byte(bits>>40), byte(bits>>48))
	for _, c := range []struct {
		name   string
		b      []byte
		packed bool
	}{{"plain", plain, false}, {"packed", packed, true}} {
		t.Run(c.name, func(t *testing.T) {
			if got := DecodeBounds(c.b, c.packed); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			for n := range c.b {
				if got := DecodeBounds(c.b[:n], c.packed); got != nil {
					t.Errorf("%d bytes are enough for %v", n, got)
				}
			}
		})
	}
	if il, ok := ILAt(want, 100); ok {
		t.Errorf("an epilog is at %d", il)
	}
	for _, c := range []struct{ native, want uint32 }{{0, 0}, {4, 0}, {5, 3}, {20, 3}, {21, 9}, {39, 9}} {
		if got, ok := ILAt(want, c.native); got != c.want || !ok {
			t.Errorf("at %d: %d %v, want %d", c.native, got, ok, c.want)
		}
	}
	if _, ok := ILAt(nil, 7); ok {
		t.Error("no boundaries, and an offset")
	}
}
