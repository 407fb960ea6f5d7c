package buf

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ExpandGNU expands a .zdebug_ section: "ZLIB", the expanded size as eight
// big-endian bytes, a zlib stream. A size above limit, or one the stream does
// not keep, is an error. Memory grows with what is really there, not with what
// the size claims. Source: the GNU binutils, as Go's linker writes it too.
func ExpandGNU(raw []byte, limit uint64) ([]byte, error) {
	if len(raw) < 12 || string(raw[:4]) != "ZLIB" {
		return nil, errors.New("does not start with ZLIB and a size")
	}
	z, err := zlib.NewReader(bytes.NewReader(raw[12:]))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return ReadExactly(z, binary.BigEndian.Uint64(raw[4:]), limit)
}

// ReadExactly reads a stream of the stated size, at most limit bytes.
func ReadExactly(z io.Reader, size, limit uint64) ([]byte, error) {
	if size > limit {
		return nil, fmt.Errorf("expands to %d bytes, more than is read", size)
	}
	var out bytes.Buffer
	out.Grow(int(min(size, 1<<20)))
	n, err := io.Copy(&out, io.LimitReader(z, int64(size)+1))
	if err == nil && uint64(n) != size {
		err = fmt.Errorf("does not expand to its stated %d bytes", size)
	}
	if err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
