package cpuring

import (
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The worst thread becomes deep whenever its copies have just become small.
func TestDepth(t *testing.T) {
	var d depth
	cut, small := 0, 0
	const samples = 100000
	for range samples {
		if d.small {
			small++
			cut++
			d.sampled(0, true, 16<<10)
			continue
		}
		d.sampled(1000, false, 16<<10)
	}
	expect.True(t, cut >= 3 && cut <= 5, "%d samples are cut", cut)
	d, small = depth{}, 0
	for range samples {
		if d.small {
			small++
		}
		d.sampled(1000, false, 16<<10)
	}
	expect.Equal(t, small, samples-enoughShallow, "a shallow thread has small copies")
	d = depth{}
	draw := rand.New(rand.NewPCG(1, 2))
	for range samples {
		d.sampled(uint64(draw.IntN(2))*15<<10, false, 16<<10)
		must.True(t, !d.small, "a stack with little room is copied small")
	}
}

// A thread that is added again keeps the size of its copies. An unknown thread begins with small ones. The
// number of kept threads is bounded.
func TestDepthsKept(t *testing.T) {
	var all depths
	d := all.take(7)
	expect.True(t, d.small, "large at first")
	d.sampled(1<<14, true, 16<<10)
	for range enoughShallow * moreShallow {
		expect.True(t, !d.small, "small too soon")
		d.sampled(1000, false, 16<<10)
		all.keep(7, d)
		d = all.take(7)
	}
	expect.True(t, d.small, "a shallow thread has large copies")
	for tid := range uint32(3 * mostDepths) {
		all.keep(tid, d)
	}
	expect.True(t, len(all) <= mostDepths, "%d threads are kept", len(all))
}
