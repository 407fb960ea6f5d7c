package naming

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/context/memory"
)

// Images are the managed modules of a process by their load address. A module is read from the process's
// memory when it is first used, and cached. Images is not safe for concurrent use.
type Images struct {
	r      memory.Reader
	images map[uint64]*image // by base
	native bool              // load precompiled methods
	verify bool              // check that a cached image is still there
	// File reads a file of the process, at most the given number of bytes; nil: none. It is used for the
	// Portable PDBs of modules.
	File func(path string, most int64) ([]byte, error)
	// Path returns the path of the file that is mapped at an address, "" if unknown; nil = always unknown.
	// The runtime does not publish the paths of precompiled modules.
	Path func(addr uint64) string
	buf  [64]byte
}

// NewImages returns the images of the process that r reads.
func NewImages(r memory.Reader) *Images { return &Images{r: r, images: map[uint64]*image{}} }

// Forget drops all images: modules may have been unloaded.
func (n *Images) Forget() { clear(n.images) }

// Method returns the names of a method row of the module at base. ok is false if the row has no name, or the
// metadata cannot be read.
func (n *Images) Method(base uint64, rid int) (m demangle.MethodName, ok bool) {
	im := n.image(base, "")
	if im.md == nil {
		return m, false
	}
	m = im.named(rid)
	return m, m.Name != ""
}

// Type returns the name of a type of the module at base, Namespace.Outer+Inner, or its C# keyword; "" if it
// has none.
func (n *Images) Type(base uint64, rid int) string {
	im := n.image(base, "")
	if im.md == nil {
		return ""
	}
	return im.typ(rid)
}

func (n *Images) image(base uint64, path string) *image {
	im, ok := n.images[base]
	if !ok || n.verify && !n.current(im) {
		im = n.load(base, path)
		n.images[base] = im
	}
	if im.path == "" {
		im.path = path
	}
	return im
}

func (n *Images) bytes(addr uint64, size int) ([]byte, bool) {
	if size < 0 || addr == 0 || addr+uint64(size) < addr {
		return nil, false
	}
	b := make([]byte, size)
	return b, n.r.ReadAt(b, addr)
}

func (n *Images) small(addr uint64, size int) ([]byte, bool) {
	b := n.buf[:size]
	return b, addr != 0 && addr+8 > addr && n.r.ReadAt(b, addr)
}

func (n *Images) word(addr uint64) (uint64, bool) {
	b, ok := n.small(addr, 8)
	return binary.LittleEndian.Uint64(b), ok
}

func (n *Images) u32(addr uint64) (uint32, bool) {
	b, ok := n.small(addr, 4)
	return binary.LittleEndian.Uint32(b), ok
}

func (n *Images) u16(addr uint64) (uint16, bool) {
	b, ok := n.small(addr, 2)
	return binary.LittleEndian.Uint16(b), ok
}

// text reads a zero-terminated string of about maxPath bytes at most. It reads in pieces, because the
// string may end at the end of a mapping.
func (n *Images) text(addr uint64) string {
	var out []byte
	for len(out) < maxPath {
		size := int(min(64, 64-addr&63))
		b, ok := n.small(addr, size)
		if !ok {
			return string(out)
		}
		for _, c := range b {
			if c == 0 {
				return string(out)
			}
			out = append(out, c)
		}
		addr += uint64(size)
	}
	return string(out)
}

// wide reads a zero-terminated string of UTF-16, at most maxPath units of it. It does not decode
// surrogate pairs.
func (n *Images) wide(addr uint64) string {
	var out []rune
	for len(out) < maxPath {
		c, ok := n.u16(addr)
		if !ok || c == 0 {
			break
		}
		out = append(out, rune(c))
		addr += 2
	}
	return string(out)
}
