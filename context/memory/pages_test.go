package memory

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// counted is memory from 0x10000 to 0x90000 whose bytes are value. Only the first half of the last page can
// be read.
type counted struct {
	value byte
	reads int
}

const half = 0x90000 - pageSize/2

func (c *counted) ReadAt(b []byte, addr uint64) bool {
	c.reads++
	for i := range b {
		b[i] = c.value
	}
	return addr >= 0x10000 && addr < half && addr+uint64(len(b)) <= half
}

// During a job each page is read once, and a new job reads it again. Between jobs, and where a page cannot be
// kept, each read gets the present bytes.
func TestPages(t *testing.T) {
	c := &counted{value: 1}
	p := NewPages(c)
	read := func(addr uint64, n int, want bool, value byte, reads int) {
		t.Helper()
		b, before := make([]byte, n), c.reads
		ok := p.ReadAt(b, addr)
		expect.True(t, ok == want && (!ok || b[0] == value && b[n-1] == value) && c.reads-before == reads,
			"%#x: %v, % x, %d reads; want %v, %x, %d reads", addr, ok, b[:1], c.reads-before, want, value,
			reads)
	}
	read(0x10008, 8, true, 1, 1)
	c.value = 2
	read(0x10008, 8, true, 2, 1)
	p.Begin()
	read(0x10ff8, 8, true, 2, 1)
	c.value = 3
	read(0x10000, 8, true, 2, 0)
	read(0x10ff9, 8, true, 3, 1) // in two pages
	read(0x10000, pageSize+1, true, 3, 1)
	read(0x10000+keptPages*pageSize, 8, true, 3, 1) // takes the place of the first page
	read(0x10000, 8, true, 3, 1)
	read(half-8, 8, true, 3, 2) // the page has a part that cannot be read
	read(half-4, 8, false, 3, 2)
	read(0x8, 8, false, 3, 1)
	read(^uint64(0)-3, 8, false, 3, 1)
	c.value = 4
	p.Begin()
	read(0x10000, 8, true, 4, 1)
	p.End()
	c.value = 5
	read(0x10000, 8, true, 5, 1)
	b := make([]byte, 8)
	expect.Equal(t, testing.AllocsPerRun(10, func() {
		p.Begin()
		p.ReadAt(b, 0x10000)
	}), 0.0, "allocations")
}
