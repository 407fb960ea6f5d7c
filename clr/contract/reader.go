package contract

import (
	"encoding/binary"
	"slices"

	"github.com/seedwalk/seedwalk/context/memory"
)

// viewSize bounds the bytes of one read. The largest read is that of an image's headers.
const viewSize = 512

// view provides fixed-size reads into its own buffer, so that reads through the interface do not allocate.
type view struct {
	r      memory.Reader
	buf    [viewSize]byte
	unread uint64 // address of the last memory that could not be read
}

// bytes reads n bytes into the view's buffer; the next read overwrites them. It returns false if n is out of
// 0..len(buf), addr is 0, the range wraps, or the memory cannot be read.
func (v *view) bytes(addr uint64, n int) ([]byte, bool) {
	if n < 0 || n > len(v.buf) || addr == 0 || addr+uint64(n) < addr {
		return nil, false
	}
	b := v.buf[:n]
	if !v.r.ReadAt(b, addr) {
		v.unread = addr
		// A read has at most viewSize bytes, so it is in two pages at most.
		if next := addr&^(pageSize-1) + pageSize; next < addr+uint64(n) && v.r.ReadAt(b[:next-addr], addr) {
			v.unread = next
		}
		return b, false
	}
	return b, true
}

func (v *view) word(addr uint64) (uint64, bool) {
	b, ok := v.bytes(addr, 8)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

// words reads the words of a structure at the given offsets into out. It tries one read of all of them first,
// because a read of another process costs far more than its bytes.
func (v *view) words(at uint64, out []uint64, offsets ...uint64) bool {
	lo, hi := slices.Min(offsets), slices.Max(offsets)
	if n := hi - lo + 8; n >= 8 && n <= viewSize {
		if b, ok := v.bytes(at+lo, int(n)); ok {
			for i, o := range offsets {
				out[i] = binary.LittleEndian.Uint64(b[o-lo:])
			}
			return true
		}
	}
	for i, o := range offsets {
		var ok bool
		if out[i], ok = v.word(at + o); !ok {
			return false
		}
	}
	return true
}

func (v *view) u32(addr uint64) (uint32, bool) {
	b, ok := v.bytes(addr, 4)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}
