package target

import (
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// counter is memory that counts its reads. Every address is readable.
type counter int

func (c *counter) ReadAt(b []byte, _ uint64) bool     { *c++; return true }
func (c *counter) ReadSome(b []byte, addr uint64) int { *c++; return len(b) }

// The tables read a page once while pages are kept. Before a runtime is found, there is nothing to keep.
func TestKeepPages(t *testing.T) {
	mem := new(counter)
	p := &Process{Mem: mem}
	p.KeepPages()
	p.DropPages()
	p.pages = memory.NewPages(p.Mem)
	for _, c := range []struct {
		begin func()
		want  counter
	}{{p.KeepPages, 1}, {p.DropPages, 3}} {
		*mem = 0
		c.begin()
		for range 3 {
			memory.Word(p.pages, 0x10008)
		}
		expect.Equal(t, *mem, c.want, "reads")
	}
}
