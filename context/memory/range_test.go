package memory

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// everywhere is memory that is readable at each address below one, and counts the reads.
type everywhere struct {
	end   uint64
	reads int
}

func (m *everywhere) ReadAt(p []byte, addr uint64) bool {
	m.reads++
	copy(p, bytes(len(p), byte(addr))) // also where only a part is readable
	return addr <= m.end-uint64(len(p))
}

// A word that is unreadable in part is 0, and addresses without memory are not read.
func TestWordOfReader(t *testing.T) {
	for _, c := range []struct {
		addr  uint64
		word  uint64
		half  uint32
		reads int
	}{
		{0, 0, 0, 0},
		{4095, 0, 0, 0},
		{4096, 0x0706050403020100, 0x03020100, 2},
		{0x10001, 0x0807060504030201, 0x04030201, 2},
		{1<<63 - 8 - 16, 0xefeeedecebeae9e8, 0xebeae9e8, 2},
		{1<<63 - 4 - 16, 0, 0xefeeedec, 2},
		{1<<63 - 2, 0, 0, 2},
		{1 << 63, 0, 0, 0},
	} {
		m := &everywhere{end: 1<<63 - 16}
		word, ok := Word(m, c.addr)
		half, ok2 := Uint32(m, c.addr)
		expect.True(t, word == c.word && half == c.half && m.reads == c.reads, "%#x: %#x, %#x, %d reads",
			c.addr, word, half, m.reads)
		expect.True(t, ok == (c.word != 0) && ok2 == (c.half != 0), "%#x: %v, %v", c.addr, ok, ok2)
	}
}
