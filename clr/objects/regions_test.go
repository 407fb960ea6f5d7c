package objects

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestJoinRegions(t *testing.T) {
	for _, c := range []struct {
		name     string
		in, want []memory.Range
	}{
		{"apart", []memory.Range{{Start: 30, End: 40}, {Start: 10, End: 20}},
			[]memory.Range{{Start: 10, End: 20}, {Start: 30, End: 40}}},
		{"adjacent", []memory.Range{{Start: 10, End: 20}, {Start: 20, End: 40}},
			[]memory.Range{{Start: 10, End: 20}, {Start: 20, End: 40}}},
		{"shared", []memory.Range{{Start: 10, End: 20}, {Start: 10, End: 24}, {Start: 10, End: 20}},
			[]memory.Range{{Start: 10, End: 24}}},
		{"inside", []memory.Range{{Start: 10, End: 40}, {Start: 20, End: 30}},
			[]memory.Range{{Start: 10, End: 40}}},
		{"none", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Slices(t, joinRegions(c.in), c.want)
		})
	}
}

// counts is a memory whose reads return a collection's counter, one value after the other.
type counts []uint32

func (c *counts) ReadAt(p []byte, _ uint64) bool {
	binary.LittleEndian.PutUint32(p, (*c)[0])
	*c = (*c)[1:]
	return true
}

// TestStill checks a read during which a collection begins.
func TestStill(t *testing.T) {
	for _, c := range []struct {
		counter   counts // before and after the read
		read, yes bool
	}{
		{counts{0, 0}, true, true},
		{counts{0, 1}, true, false},
		{counts{1, 0}, false, false},
	} {
		left, read := c.counter, false
		h := &Heap{r: &left}
		binary.LittleEndian.PutUint64(h.vars[varInvalid:], 1<<16)
		yes := h.Still(func() {
			read = true
			expect.Equal(t, len(left), 1, "values left for %v", c.counter)
		})
		expect.True(t, yes == c.yes && read == c.read, "%v: still %v, read %v", c.counter, yes, read)
	}
}
