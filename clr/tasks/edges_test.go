package tasks

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// endless is memory of zeros.
type endless struct{}

func (endless) ReadAt(p []byte, _ uint64) bool { return true }

func (endless) ReadSome(p []byte, _ uint64) int { return len(p) }

// An array that is too large, or too much together with earlier ones, is read in part. The result says so.
func TestArraysCut(t *testing.T) {
	for _, c := range []struct {
		name               string
		earlier, size, all uint64
	}{
		{"fits", 0, 8 * maxContinue, 8 * maxContinue},
		{"too large", 0, 8*maxContinue + 8, 8 * maxContinue},
		{"fits exactly", maxParts - 80, 80, 80},
		{"too much together", maxParts - 80, 88, 80},
		{"nothing left", maxParts, 88, 0},
	} {
		g := &graph{src: &Source{Memory: endless{}}, out: &Result{}, partBytes: c.earlier}
		b := g.readArray(0x1000, c.size)
		expect.Equal(t, uint64(len(b)), c.all, c.name)
		expect.Equal(t, g.partBytes, c.earlier+c.all, c.name)
		expect.Equal(t, g.out.ArraysCut, c.all < c.size, c.name)
	}
}
