package pe

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/pe/rva"
)

// Block is a part of an image: Data[0] lies at RVA.
type Block = rva.Block

// BytesAt returns n bytes at rva without copying them. They must lie in one
// section (or block). It allocates nothing.
func (f *File) BytesAt(rva uint32, n int) ([]byte, bool) {
	return f.runs.Bytes(rva, n)
}

// Tail returns at most max bytes from rva to the end of its section (or block),
// or nil. It does not copy or allocate.
func (f *File) Tail(rva uint32, max int) []byte {
	return f.runs.Tail(rva, max)
}

func u16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func u64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// word reads a 32-bit word at rva.
func (f *File) word(rva uint32) (uint32, bool) {
	b := f.runs.At(rva)
	if len(b) < 4 {
		return 0, false
	}
	return u32(b), true
}

// text reads the string at rva up to its NUL. It returns false if there is no
// NUL in the first maxName bytes.
func (f *File) text(rva uint32) (string, bool) {
	for i, b := 0, f.Tail(rva, maxName); i < len(b); i++ {
		if b[i] == 0 {
			return string(b[:i]), true
		}
	}
	return "", false
}

// bytes returns how many bytes of the image there are: of the file, or of all blocks.
func (f *File) bytes() (n int) {
	if f.raw != nil {
		return len(f.raw)
	}
	for i := range f.runs {
		n += len(f.runs[i].Data)
	}
	return n
}

// maxText bounds the bytes of names: the largest DLLs have a few MiB.
const maxText = 1 << 24

// textRoom bounds the total bytes of the names that one table of the image yields. Names in a file may
// overlap, so without this bound a small image could fill the memory.
func (f *File) textRoom() int { return min(maxText, 1<<16+8*f.bytes()) }
