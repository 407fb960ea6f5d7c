package symbol

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// Limits of compressed mini debug info. Real data are a few megabytes, have dictionaries of at most 64 MiB,
// and expand three- to fivefold.
const (
	maxDebugData = 256 << 20 // bytes after decompression
	maxDict      = 64 << 20
	fixedGrowth  = 1 << 20 // bytes after decompression, whatever the input's size
	growthFactor = 64      // bytes after decompression for each byte of the input
	fixedChunks  = 64      // chunks, whatever the input's size; the decoder allocates a state for each
	chunkBytes   = 1 << 10 // bytes of the input for each further chunk; a chunk holds up to 64 KiB
)

// XZError is the position and kind of damage in an .xz stream.
type XZError struct {
	What   string
	Offset int
	Value  uint64
}

func (e *XZError) Error() string {
	return fmt.Sprintf("xz: bad %s %#x at offset %d", e.What, e.Value, e.Offset)
}

// unxz decompresses one .xz stream into at most limit bytes. It reads the container itself, because the xz
// package would allocate any dictionary that the input requests. One decoder decompresses all blocks. Its
// dictionary is no larger than their content, so time and memory are proportional to the size of the input.
// Checksums of the content are not verified: the ELF reader checks the content.
func unxz(data []byte, limit int64) ([]byte, error) {
	if len(data) < 12 || string(data[:6]) != "\xfd7zXZ\x00" {
		return nil, &XZError{What: "magic"}
	}
	check, err := checkSize(data[7] & 0x0f)
	if err != nil {
		return nil, err
	}
	all := content{limit: min(limit, fixedGrowth+growthFactor*int64(len(data))),
		left: fixedChunks + len(data)/chunkBytes, dict: lzma.MinDictCap}
	pos := 12
	for pos < len(data) && data[pos] != 0 { // a zero byte begins the index
		if pos, err = all.block(data, pos, check); err != nil {
			return nil, err
		}
	}
	if pos >= len(data) {
		return nil, &XZError{What: "end", Offset: pos}
	}
	return all.decompress()
}

// content is the LZMA2 chunks of all blocks, as one stream. Each block begins with a reset of the dictionary,
// which is allowed anywhere in a stream.
type content struct {
	limit  int64 // bytes after decompression
	left   int   // chunks still allowed
	size   int64 // the same, as stated by the chunks
	dict   int64
	chunks []byte
}

func (c *content) decompress() ([]byte, error) {
	r, err := lzma.Reader2Config{DictCap: int(c.dict)}.NewReader2(bytes.NewReader(append(c.chunks, 0)))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_, err = io.Copy(&out, io.LimitReader(r, c.size))
	return out.Bytes(), err
}

// checkSize returns the size of the check field by its type (section 2.1.1.2).
func checkSize(id byte) (int, error) {
	sizes := [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}
	if id > 15 {
		return 0, &XZError{What: "check type", Offset: 7, Value: uint64(id)}
	}
	return sizes[id], nil
}

// block adds the chunks of the block at pos and returns the start of the next block.
func (c *content) block(data []byte, pos, check int) (int, error) {
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
	before, begin := c.size, pos+size
	end, err := c.addChunks(data, begin)
	if err != nil {
		return 0, err
	}
	c.dict = max(c.dict, min(int64(dict), c.size-before))
	next := end + (begin-end)&3 + check
	if next > len(data) {
		return 0, &XZError{What: "block end", Offset: next, Value: uint64(len(data))}
	}
	return next, nil
}

// addChunks adds a block's LZMA2 chunks and returns the position after their end marker.
func (c *content) addChunks(data []byte, begin int) (end int, err error) {
	pos := begin
	for pos < len(data) && data[pos] != 0 {
		packed, unpacked, ok := chunk(data[pos:])
		if !ok || pos == begin && data[pos] != 1 && data[pos] < 0xe0 { // the first one resets the dictionary
			return 0, &XZError{What: "chunk", Offset: pos, Value: uint64(data[pos])}
		}
		if c.size += unpacked; c.size > c.limit {
			return 0, &XZError{What: "size after decompression: more than",
				Offset: pos, Value: uint64(c.limit)}
		}
		if c.left--; c.left < 0 {
			return 0, &XZError{What: "chunk count: more than", Offset: pos,
				Value: uint64(fixedChunks + len(data)/chunkBytes)}
		}
		pos += packed
	}
	if pos >= len(data) {
		return 0, &XZError{What: "chunk end", Offset: pos, Value: uint64(len(data))}
	}
	c.chunks = append(c.chunks, data[begin:pos]...)
	return pos + 1, nil
}

// chunk returns an LZMA2 chunk's size with its header, and the size of its content.
func chunk(b []byte) (packed int, unpacked int64, ok bool) {
	if len(b) < 6 && (b[0] > 2 || len(b) < 3) {
		return 0, 0, false
	}
	low := int64(binary.BigEndian.Uint16(b[1:])) + 1
	switch control := b[0]; {
	case control == 1, control == 2: // not compressed
		return 3 + int(low), low, 3+int(low) <= len(b)
	case control < 0x80:
		return 0, 0, false
	case control < 0xc0:
		packed = 5
	default:
		packed = 6 // with properties
	}
	packed += int(binary.BigEndian.Uint16(b[3:])) + 1
	return packed, int64(b[0]&0x1f)<<16 + low, packed <= len(b)
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
