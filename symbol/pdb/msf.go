package pdb

import (
	"encoding/binary"
	"slices"
)

var le = binary.LittleEndian

const (
	magic     = "Microsoft C/C++ MSF 7.00\r\n\x1aDS\x00\x00\x00"
	superSize = len(magic) + 24
	noSize    = 0xffffffff // size of a stream that was deleted
	copies    = 4          // how often the length of the file may be copied into streams
)

// container is a file of streams.
type container struct {
	name   string
	data   []byte
	block  uint64   // bytes
	sizes  []uint32 // of the streams, bytes
	first  []uint64 // per stream, the index of its first block in blocks
	blocks []byte   // numbers of blocks, 4 bytes each
	budget uint64   // bytes that may still be copied
}

func (c *container) fail(structure string, value uint64, r Reason) error {
	return &Error{c.name, structure, value, r}
}

// open reads the directory of the streams.
func (c *container) open() error {
	if len(c.data) < superSize || string(c.data[:len(magic)]) != magic {
		return c.fail("magic", uint64(len(c.data)), NotPDB)
	}
	h := c.data[len(magic):]
	c.block, c.budget = uint64(le.Uint32(h)), copies*uint64(len(c.data))
	if c.block < 512 || c.block > 1<<16 || c.block&(c.block-1) != 0 {
		return c.fail("block size", c.block, BadVersion)
	}
	size := uint64(le.Uint32(h[12:]))
	list, err := c.slice("block map", uint64(le.Uint32(h[20:]))*c.block, c.count(size)*4)
	if err != nil {
		return err
	}
	directory, err := c.read("directory", size, list)
	if err != nil {
		return err
	}
	return c.directory(directory)
}

// directory takes the sizes of the streams and the places of their blocks.
func (c *container) directory(b []byte) error {
	if len(b) < 4 {
		return c.fail("directory", uint64(len(b)), Truncated)
	}
	n := uint64(le.Uint32(b))
	if b = b[4:]; n*4 > uint64(len(b)) {
		return c.fail("number of streams", n, TooLarge)
	}
	c.blocks = b[n*4:]
	c.sizes, c.first = make([]uint32, n), make([]uint64, n)
	at := uint64(0)
	for i := range c.sizes {
		size := le.Uint32(b[i*4:])
		if size == noSize {
			size = 0
		}
		c.sizes[i], c.first[i] = size, at
		at += c.count(uint64(size))
	}
	if at*4 > uint64(len(c.blocks)) {
		return c.fail("blocks of streams", at, Truncated)
	}
	return nil
}

// count is the number of blocks of size bytes.
func (c *container) count(size uint64) uint64 { return (size + c.block - 1) / c.block }

func (c *container) slice(structure string, at, n uint64) ([]byte, error) {
	if at > uint64(len(c.data)) || n > uint64(len(c.data))-at {
		return nil, c.fail(structure, at, Truncated)
	}
	return c.data[at : at+n], nil
}

// read copies size bytes from the blocks of a list, which has that many.
func (c *container) read(structure string, size uint64, list []byte) ([]byte, error) {
	if size > c.budget {
		return nil, c.fail(structure, size, TooLarge)
	}
	c.budget -= size
	out := slices.Grow([]byte(nil), int(size))
	for ; size > 0; list = list[4:] {
		number, n := uint64(le.Uint32(list)), min(size, c.block)
		b, err := c.slice(structure, number*c.block, n)
		if err != nil {
			return nil, c.fail(structure, number, BadBlock)
		}
		out, size = append(out, b...), size-n
	}
	return out, nil
}

// stream copies a stream. One that was deleted is empty.
func (c *container) stream(i uint32, structure string) ([]byte, error) {
	if uint64(i) >= uint64(len(c.sizes)) {
		return nil, c.fail(structure, uint64(i), NoStream)
	}
	return c.read(structure, uint64(c.sizes[i]), c.blocks[c.first[i]*4:])
}
