package fuzz

import (
	"bytes"
	"errors"
	"testing"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/metadata"
	"github.com/seedwalk/seedwalk/testkit/clrasm"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// maxName is far above any name that metadata can make: what a signature of the largest
// number of types makes of names of the longest kind.
const maxName = 4 << 20

// FuzzMetadata reads any bytes as a module's metadata: no panic, names of bounded size,
// and a typed reason for what is refused.
func FuzzMetadata(f *testing.F) {
	whole := clrasm.Overloads()
	f.Add(whole, uint16(1))
	f.Add(whole[:len(whole)/2], uint16(2))
	f.Add(bytes.Replace(whole, []byte("#Blob"), []byte("#Bla\x00"), 1), uint16(3))
	f.Fuzz(func(t *testing.T, in []byte, rid uint16) {
		m, err := metadata.Parse(in)
		if err != nil {
			typed(t, err)
			return
		}
		for _, r := range []int{0, 1, 2, 3, int(rid)} {
			n := m.Describe(r)
			must.True(t, len(n.Name)+len(n.Parameters) <= maxName,
				"%d bytes", len(n.Name)+len(n.Parameters))
			m.Type(r)
		}
	})
}

// FuzzSignature reads any bytes as a method's signature and as a type.
func FuzzSignature(f *testing.F) {
	f.Add([]byte{0x30, 1, 3, 1, 0x1e, 0, 0x15, 0x12, 5, 2, 8, 0x1d, 0x0e, 0x14, 8, 2, 1, 3, 1, 0})
	f.Add([]byte{0, 1, 1, 0x1b, 0x10, 1, 2, 1, 8, 0x45, 0x1f, 9, 0x0e})
	m := must.Get(metadata.Parse(clrasm.Overloads()))(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		list, result, err := metadata.Parameters(in, m.Scope())
		if err != nil {
			typed(t, err)
		}
		must.True(t, len(list)+len(result) <= maxName, "%d bytes of %d", len(list)+len(result), len(in))
		if _, behind, err := metadata.TypeAt(in, 0, m.Scope()); err == nil && int(behind) > len(in) {
			t.Fatalf("ends at %d of %d", behind, len(in))
		}
	})
}

// FuzzLines reads any bytes as a Portable PDB.
func FuzzLines(f *testing.F) {
	whole := clrasm.Lines()
	f.Add(whole, uint16(1), uint32(9))
	f.Add(whole, uint16(3), uint32(7))
	f.Add(whole[:len(whole)-9], uint16(1), uint32(1<<31))
	f.Fuzz(func(t *testing.T, in []byte, method uint16, il uint32) {
		l, err := metadata.ParseLines(in)
		if err != nil {
			typed(t, err)
			return
		}
		if p, ok := l.Find(int(method), il); ok && (p.File == "" || p.Line <= 0 || len(p.File) > maxName) {
			t.Fatalf("%v", p)
		}
	})
}

// FuzzBounds reads any bytes as boundaries of IL and native code: in order, and in range.
func FuzzBounds(f *testing.F) {
	f.Add([]byte{0x51, 0x31, 0x21}, false, uint32(7))
	f.Add([]byte{0x41, 0x03, 0xff, 0x07, 0x11}, true, uint32(0))
	f.Fuzz(func(t *testing.T, in []byte, packed bool, native uint32) {
		bounds := contract.DecodeBounds(in, packed)
		last := uint32(0)
		for _, b := range bounds {
			if b.Native < last || b.Native >= 1<<28 || b.IL >= 1<<24 && b.IL < contract.Epilog {
				t.Fatalf("%v after %d", b, last)
			}
			last = b.Native
		}
		if il, ok := contract.ILAt(bounds, native); ok && il >= 1<<24 {
			t.Fatalf("IL offset %#x", il)
		}
	})
}

func typed(t *testing.T, err error) {
	t.Helper()
	var e *metadata.Error
	must.True(t, errors.As(err, &e), "%T: %v", err, err)
}
