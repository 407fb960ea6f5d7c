package cpuring

import (
	"math"
	"math/rand/v2"
	"testing"
)

const ms = 1000000

func random() func(uint64) uint64 {
	return rand.New(rand.NewPCG(1, 2)).Uint64N
}

func TestPeriods(t *testing.T) {
	draw := random()
	var sum uint64
	for range 10000 {
		if p := firstPeriod(ms, draw); p < ms/shortestPart || p > ms {
			t.Fatalf("a first period of %d", p)
		}
		p := nextPeriod(ms, draw)
		if p < ms-ms/4 || p > ms+ms/4 {
			t.Fatalf("a period of %d", p)
		}
		sum += p
	}
	if mean := sum / 10000; mean < 990000 || mean > 1010000 {
		t.Errorf("a mean of %d", mean)
	}
}

// Of a first period, only the first hit counts. After it the clock has the whole period, and a new one after
// several hits.
func TestHits(t *testing.T) {
	p := period{whole: ms, now: ms / 10, first: true}
	if counts, renew := p.hit(5); !counts || !renew {
		t.Error("the first hit does not count, or leaves the period as it is")
	}
	p.renewed(ms, ms/10, 100)
	if counts, _ := p.hit(99); counts {
		t.Error("a hit before the new period counts")
	}
	for i := range renewAfter {
		counts, renew := p.hit(100 + uint64(i))
		if !counts || renew != (i == renewAfter-1) {
			t.Errorf("hit %d: %v %v", i, counts, renew)
		}
	}
	if p.hits != 1+renewAfter {
		t.Errorf("%d hits", p.hits)
	}
}

// Missing hits are time in the kernel, if there are enough of them to tell.
func TestInKernel(t *testing.T) {
	user := period{whole: ms, now: ms / 2, first: true}
	user.hit(1)
	user.renewed(ms, ms/2, 2)
	for range 7 {
		user.hit(3)
	}
	half := user
	half.renewed(ms*5/4, ms/2+14*ms, 4) // 14 periods, 7 hits
	never := period{whole: ms, now: ms, first: true}
	for _, c := range []struct {
		name    string
		p       period
		counted uint64
		want    uint64
	}{
		{"short", never, 9 * ms, 0}, {"all of it", never, 20 * ms, 20 * ms}, {"none of it", user, ms/2 + 7*ms, 0},
		{"half of it", half, ms/2 + 14*ms, 7 * ms}, {"and of a later period", half, ms/2 + 14*ms + 5*ms, 11 * ms},
	} {
		if got := c.p.inKernel(c.counted); got != c.want {
			t.Errorf("%s: %d ns in the kernel, want %d", c.name, got, c.want)
		}
	}
}

// kernel simulates the kernel's timer for a thread that works in bursts: a hit is late, and a hit that is due
// when the thread stops comes soon after the thread runs again.
type kernel struct {
	burst, late, again uint64
	at, due            uint64 // in nanoseconds of processor time: now, and when the timer is due
}

// next runs up to the next hit, and returns its place in its burst.
func (k *kernel) next(period uint64) (place uint64) {
	for {
		end := (k.at/k.burst + 1) * k.burst
		if hit := k.due + k.late; hit < end {
			k.at, k.due = hit, k.due+period
			return hit % k.burst
		}
		if k.at = end; k.due < end {
			k.due = end + k.again
		}
	}
}

// share is the part of the hits that fall into the first 30% of bursts of 1 ms.
func share(renew bool, draw func(uint64) uint64) float64 {
	k := kernel{burst: ms, late: 50000, again: 10000}
	p := period{whole: ms * 1003 / 1000, first: true}
	p.now = firstPeriod(p.whole, draw)
	k.due = p.now
	first := 0
	const hits = 20000
	for range hits {
		if k.next(p.now) < 300000 {
			first++
		}
		if _, due := p.hit(k.at); due && (renew || p.first) {
			p.renewed(p.whole, k.at, k.at)
			if renew {
				p.now = nextPeriod(p.whole, draw)
			}
			k.due = k.at + p.now
		}
	}
	return float64(first) / hits
}

// A program whose bursts are as long as the period is sampled without bias. With a fixed period it is not.
func TestBurstsOfOnePeriod(t *testing.T) {
	if got := share(true, random()); math.Abs(got-0.3) > 0.015 {
		t.Errorf("%.1f %% of the hits in 30 %% of the time", 100*got)
	}
	if got := share(false, random()); math.Abs(got-0.3) < 0.03 {
		t.Errorf("a fixed period finds %.1f %%: this test shows nothing", 100*got)
	}
}
