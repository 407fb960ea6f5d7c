package naming

import (
	"bytes"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestUnsigned(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		want uint32
		next uint32
		ok   bool
	}{
		{"one byte", []byte{0x54}, 42, 1, true},
		{"two", []byte{0x01 | 0x3<<2, 0x04}, 0x103, 2, true},
		{"three", []byte{0x03 | 0x1<<3, 0x02, 0x01}, 0x1 | 0x2<<5 | 0x1<<13, 3, true},
		{"four", []byte{0x07, 0x01, 0x00, 0x10}, 0x1<<4 | 0x10<<20, 4, true},
		{"five", []byte{0x0f, 0x78, 0x56, 0x34, 0x12}, 0x12345678, 5, true},
		{"none", []byte{0x1f}, 0, 0, false},
		{"nothing", nil, 0, 0, false},
	} {
		v, next, ok := (native32{b: c.b}).unsigned(0)
		expect.True(t, v == c.want && next == c.next && ok == c.ok, "%s: %#x, %d, %v", c.name, v, next, ok)
	}
	v, _, _ := (native32{b: []byte{0xfe}}).signed(0)
	expect.True(t, v == -1, "signed: %d", v)
}

func TestMethodSignature(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		rid  int32
		size uint32
		ok   bool
	}{
		{"plain", []byte{0, 7}, 7, 2, true},
		{"instantiated over int and string", []byte{methodInstantiation, 7, 2, 0x08, 0x0e}, 7, 5, true},
		{"of a generic type over a canonical one",
			[]byte{methodOwner, 0x15, 0x12, 0x05, 1, 0x3e, 9}, 9, 7, true},
		{"of another module", []byte{0x80, methodContext, 3, 9}, 0, 4, true},
		{"an array of arrays", []byte{methodOwner, 0x14, 0x1d, 0x08, 2, 0, 0, 9}, 9, 8, true},
		{"cut", []byte{methodOwner, 0x15, 0x12}, 0, 0, false},
		{"no type", []byte{methodOwner, 0x00, 9}, 0, 0, false},
		{"nested too deep", append([]byte{methodOwner}, slices.Repeat([]byte{0x1d}, 200)...), 0, 0, false},
		{"too many arguments", []byte{methodInstantiation, 7, 0xdf, 0xff, 0xff, 0xff, 8}, 0, 0, false},
	} {
		rid, behind, ok := (native32{b: c.b}).method(0)
		if ok != c.ok || ok && (rid != c.rid || behind != c.size) {
			t.Errorf("%s: row %d, ends at %d, %v", c.name, rid, behind, ok)
		}
	}
}

// All parts of a method's code belong to the method, up to the start of the next one.
func TestFind(t *testing.T) {
	p := &precompiled{base: 0x1000, begins: []uint32{0x10, 0x20, 0x30, 0x40},
		starts: []start{{index: 0, rid: 5}, {index: 2, rid: 6}}}
	for _, c := range []struct {
		ip    uint64
		begin uint64
		rid   int32
		ok    bool
	}{{0x100f, 0, 0, false}, {0x1010, 0x1010, 5, true}, {0x102f, 0x1010, 5, true},
		{0x1030, 0x1030, 6, true}, {0x1050, 0x1030, 6, true}} {
		begin, s, ok := p.find(c.ip)
		expect.True(t, begin == c.begin && s.rid == c.rid && ok == c.ok,
			"%#x: %#x, %d, %v", c.ip, begin, s.rid, ok)
	}
}

// zeros is memory filled with zeros.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ uint64) bool { clear(p); return true }

// Sections that wrap or exceed the largest image are refused before memory is allocated for them.
func TestLazyImageBounds(t *testing.T) {
	n := &Images{r: zeros{}}
	for name, c := range map[string]struct {
		sections []pe.Section
		size     int // -1: refused
	}{
		"none": {nil, 0},
		"two": {[]pe.Section{{RVA: 0x2000, VirtualSize: 0x100},
			{RVA: 0x1000, VirtualSize: 0x80}}, 0x2100},
		"wraps": {[]pe.Section{{RVA: 0x1000, VirtualSize: 0x100},
			{RVA: 0xffffff00, VirtualSize: 0x200}}, -1},
		"too large":   {[]pe.Section{{RVA: 0x1000, VirtualSize: maxImage}}, -1},
		"just fits":   {[]pe.Section{{RVA: maxImage - 16, VirtualSize: 16}}, maxImage},
		"empty, high": {[]pe.Section{{RVA: 0xffffffff}}, -1},
	} {
		img := n.lazyImage(0, c.sections)
		expect.True(t, (img == nil) == (c.size < 0) && (img == nil || len(img.b) == c.size), "%s", name)
	}
}

// counted counts the bytes that are read.
type counted struct {
	flatMemory
	bytes int
}

func (c *counted) ReadAt(p []byte, addr uint64) bool {
	c.bytes += len(p)
	return c.flatMemory.ReadAt(p, addr)
}

// The tables of methods are the same whether the image is read in parts or as a whole. Less than half of the
// image is read.
func TestLazyImage(t *testing.T) {
	whole, im, img := precompiledLibrary(t, "System.Private.CoreLib.dll")
	c := &counted{flatMemory: whole.r.(flatMemory)}
	n := NewImages(c)
	n.native = true
	lazy := n.image(0x10000, im.path)
	must.True(t, lazy.r2r != nil, "not precompiled")
	t.Logf("read %d of %d bytes for %d methods", c.bytes, len(img), len(lazy.r2r.starts))
	expect.True(t, c.bytes < len(img)/2, "read %d of %d bytes", c.bytes, len(img))

	cor, _ := whole.bytes(im.head.at(im.head.cor.rva), corSize)
	p := &precompiled{begins: lazy.r2r.begins}
	p.methods(native32{b: img}, whole.r2rSections(im.head, directoryAt(cor[corNative:])))
	expect.Slices(t, lazy.r2r.starts, p.starts, "methods")
	expect.True(t, bytes.Equal(lazy.r2r.over, p.over), "the encoded methods differ")
}
