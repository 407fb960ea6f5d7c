package buf

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Compressed sections. What one expands to is allocated once, at its stated
// size, after that was held against the bytes that are there: a small file
// cannot ask for much memory, whether it lies or not. Nothing else of that size
// is kept beside it.

// ErrTooLarge means that a section is larger than the limit for expansion.
var ErrTooLarge = errors.New("expands to more bytes than are read")

// MaxRatio bounds how many times its own size a section may expand to; what
// ends below freeSize may have any ratio. Call frame information of compilers
// shrinks to about a third, that of 8,000 functions that are all alike to a
// seventeenth.
const (
	MaxRatio = 40
	freeSize = 1 << 16
)

// CheckExpansion refuses (ErrTooLarge) to expand n bytes to size, if that is more
// than limit or MaxRatio allows.
func CheckExpansion(n int, size, limit uint64) error {
	if size > limit || size > freeSize && size/MaxRatio > uint64(n) {
		return fmt.Errorf("%w: %d, from %d", ErrTooLarge, size, n)
	}
	return nil
}

// ExpandGNU expands a .zdebug_ section: "ZLIB", the expanded size as eight
// big-endian bytes, a zlib stream. A size that CheckExpansion refuses, or one the
// stream does not keep, is an error. Source: the GNU binutils, as Go's linker
// writes it too.
func ExpandGNU(raw []byte, limit uint64) ([]byte, error) {
	if len(raw) < 12 || string(raw[:4]) != "ZLIB" {
		return nil, errors.New("does not start with ZLIB and a size")
	}
	return ExpandZlib(raw[12:], binary.BigEndian.Uint64(raw[4:]), limit)
}

// ExpandZlib expands a zlib stream of the stated size.
func ExpandZlib(raw []byte, size, limit uint64) ([]byte, error) {
	if err := CheckExpansion(len(raw), size, limit); err != nil {
		return nil, err
	}
	z, err := zlib.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	out := make([]byte, size)
	n, err := io.ReadFull(z, out)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = fmt.Errorf("expands to %d bytes, %d are stated", n, size)
	}
	if err == nil {
		err = ended(z, size)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ended checks that a stream has no byte left, and its checksum with it.
func ended(z io.Reader, size uint64) error {
	var one [1]byte
	n, err := io.ReadFull(z, one[:])
	switch {
	case n != 0:
		return fmt.Errorf("expands to more than the %d bytes that are stated", size)
	case err == io.EOF:
		return nil
	}
	return err
}
