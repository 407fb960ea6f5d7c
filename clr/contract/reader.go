package contract

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context/memory"
)

// viewSize is the most bytes of one read: the headers of an image.
const viewSize = 512

// view provides fixed-size reads into its own buffer, so that reads through the interface do not allocate.
type view struct {
	r   memory.Reader
	buf [viewSize]byte
}

// bytes reads n bytes into the view's buffer; the next read overwrites them.
// False if n is out of 0..len(buf) or the range wraps.
func (v *view) bytes(addr uint64, n int) ([]byte, bool) {
	if n < 0 || n > len(v.buf) || addr == 0 || addr+uint64(n) < addr {
		return nil, false
	}
	b := v.buf[:n]
	return b, v.r.ReadAt(b, addr)
}

func (v *view) word(addr uint64) (uint64, bool) {
	b, ok := v.bytes(addr, 8)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

func (v *view) u32(addr uint64) (uint32, bool) {
	b, ok := v.bytes(addr, 4)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}
