package symbol

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// Limits of compressed mini debug info; real ones are a few megabytes with
// dictionaries of at most 64 MiB.
const (
	maxDebugData = 256 << 20 // bytes after decompression
	maxDict      = 64 << 20
)

// XZError says where a .xz stream is no good.
type XZError struct {
	What   string
	Offset int
	Value  uint64
}

func (e *XZError) Error() string {
	return fmt.Sprintf("xz: bad %s %#x at offset %d", e.What, e.Value, e.Offset)
}

// unxz decompresses one .xz stream, block by block, into at most limit bytes.
// The container is read here and not by the xz package, which would allocate
// whatever dictionary the input asks for. Checksums of the content are passed
// over: the ELF reader judges the content itself.
func unxz(data []byte, limit int64) ([]byte, error) {
	if len(data) < 12 || string(data[:6]) != "\xfd7zXZ\x00" {
		return nil, &XZError{What: "magic"}
	}
	check, err := checkSize(data[7] & 0x0f)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	pos := 12
	for pos < len(data) && data[pos] != 0 { // a zero byte begins the index
		n, err := block(data, pos, check, limit-int64(out.Len()), &out)
		if err != nil {
			return nil, err
		}
		pos = n
	}
	if pos >= len(data) {
		return nil, &XZError{What: "end", Offset: pos}
	}
	return out.Bytes(), nil
}

// checkSize is the size of the check field by its type (section 2.1.1.2).
func checkSize(id byte) (int, error) {
	sizes := [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}
	if id > 15 {
		return 0, &XZError{What: "check type", Offset: 7, Value: uint64(id)}
	}
	return sizes[id], nil
}

// block decompresses the block at pos and returns where the next begins.
func block(data []byte, pos, check int, limit int64, out *bytes.Buffer) (int, error) {
	size := (int(data[pos]) + 1) * 4
	if size > len(data)-pos {
		return 0, &XZError{What: "block header size", Offset: pos, Value: uint64(size)}
	}
	header := data[pos : pos+size]
	if got := binary.LittleEndian.Uint32(header[size-4:]); got != crc32.ChecksumIEEE(header[:size-4]) {
		return 0, &XZError{What: "block header checksum", Offset: pos + size - 4, Value: uint64(got)}
	}
	dict, err := dictionary(header[1:size-4], pos)
	if err != nil {
		return 0, err
	}
	in := bytes.NewReader(data[pos+size:])
	r, err := lzma.Reader2Config{DictCap: dict}.NewReader2(in)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(r, limit+1))
	if err != nil {
		return 0, err
	}
	if n > limit {
		return 0, &XZError{What: "size after decompression: more than", Offset: pos, Value: uint64(limit)}
	}
	used := len(data) - pos - size - in.Len()
	next := pos + size + (used+3)&^3 + check
	if next > len(data) {
		return 0, &XZError{What: "block end", Offset: next, Value: uint64(len(data))}
	}
	return next, nil
}

// dictionary reads a block header's flags and its one filter, which must be
// LZMA2, and returns the dictionary's size (sections 3.1 and 5.3.1).
func dictionary(h []byte, pos int) (int, error) {
	flags := h[0]
	if flags&0x3f != 0 {
		return 0, &XZError{What: "block flags (one filter only)", Offset: pos + 1, Value: uint64(flags)}
	}
	h = h[1:]
	for _, bit := range []byte{0x40, 0x80} { // compressed and uncompressed size
		if flags&bit != 0 {
			_, n := binary.Uvarint(h)
			if n <= 0 {
				return 0, &XZError{What: "block size field", Offset: pos}
			}
			h = h[n:]
		}
	}
	if len(h) < 3 || h[0] != 0x21 || h[1] != 1 {
		return 0, &XZError{What: "filter", Offset: pos, Value: uint64(append(h, 0)[0])}
	}
	bits := h[2]
	if bits > 39 {
		return 0, &XZError{What: "dictionary", Offset: pos, Value: uint64(bits)}
	}
	dict := uint64(2|bits&1) << (bits/2 + 11)
	if dict > maxDict {
		return 0, &XZError{What: "dictionary size", Offset: pos, Value: dict}
	}
	return max(int(dict), lzma.MinDictCap), nil
}
