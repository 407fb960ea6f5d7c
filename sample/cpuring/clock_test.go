package cpuring

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

const ms = 1000000

func random() func(uint64) uint64 {
	return rand.New(rand.NewPCG(1, 2)).Uint64N
}

func TestPeriods(t *testing.T) {
	draw := random()
	var sum uint64
	for range 10000 {
		if p := firstPeriod(ms, shortestPart, 0, draw); p < ms/shortestPart || p > ms {
			t.Fatalf("a first period of %d", p)
		}
		if p := firstPeriod(ms/5, stretchMinPart, 60_000, draw); p < 75_000 || p > ms/5 {
			t.Fatalf("hits take 60 us, a first period of %d", p)
		}
		p := nextPeriod(ms, draw)
		must.True(t, p >= ms-ms/4 && p <= ms+ms/4, "a period of %d", p)
		sum += p
	}
	mean := sum / 10000
	expect.True(t, mean >= 990000 && mean <= 1010000, "a mean of %d", mean)
}

// A clock with a short first period hits several times in each whole period. Of these hits, the one nearest
// to the end of each whole period counts, and so does the first hit of all. After several hits the clock gets
// another period. A clock of Config.Short keeps its first period if that is long enough.
func TestGrid(t *testing.T) {
	for _, keep := range []bool{false, true} {
		for _, first := range []uint64{ms / 100, ms / fewOnGrid, ms / 3, ms * 3 / 4, ms} {
			p := period{whole: ms, now: first, first: true, keep: keep, grid: first}
			for at := first; at < 100*ms; at += first { // CPU time
				counts, renew := p.hit(at)
				expect.Equal(t, p.hits, p.gridHits(at), "hits up to a time, with a first period of %d", first)
				must.True(t, renew == (!keep || first < ms/fewOnGrid) && (counts || at > first),
					"a new period: %v, or the first hit does not count", renew)
			}
			p.renewed(ms, 100*ms, 100*ms)
			early, _ := p.hit(99 * ms)
			late, renew := p.hit(101 * ms)
			expect.True(t, late && !renew && (!early || first > ms/4),
				"a hit before the new period: %v, after it: %v", early, late)
			for range renewAfter - 1 {
				_, renew = p.hit(101 * ms)
			}
			expect.True(t, renew, "no new period after %d hits", renewAfter)
		}
	}
}

// The hits that count are not late: work of a few periods has as many as longer work, for its length.
func TestGridIsNotLate(t *testing.T) {
	const clocks = 10000
	for periods := uint64(2); periods <= 6; periods++ {
		hits := 0.
		for i := range uint64(clocks) {
			p := period{whole: ms, first: true, keep: true, grid: (i + 1) * ms / clocks}
			for at := p.grid; at <= periods*ms; at += p.grid {
				p.hit(at)
			}
			hits += float64(p.hits)
		}
		if per := hits / clocks; math.Abs(per-float64(periods)) > 0.12 {
			t.Errorf("%.2f hits in %d periods", per, periods)
		}
	}
}

// A clock has one hit for each whole period, however late the tool reads the first one.
func TestFirstPeriodCounts(t *testing.T) {
	const threads, ends = 4000, 20 * ms
	draw, hits := random(), 0.
	for range threads {
		p := period{whole: ms, first: true}
		p.grid = firstPeriod(ms, shortestPart, 0, draw)
		p.now = p.grid
		read := p.grid + draw(5*ms) // when the tool reads the first hit
		for at := p.grid; at <= read; at += p.grid {
			if at == p.grid {
				p.hit(at)
				p.renewed(p.next(read, draw), read, read)
			} else {
				p.hit(at)
			}
		}
		for at := read + p.now; at <= ends; at += p.now {
			if _, renew := p.hit(at); renew {
				p.renewed(p.next(at, draw), at, at)
			}
		}
		hits += float64(p.hits)
	}
	if per := hits / threads; math.Abs(per-float64(ends)/ms) > 0.1 {
		t.Errorf("%.2f hits in %d periods", per, ends/ms)
	}
}

// Missing hits are time in the kernel, if there are enough of them to tell.
func TestInKernel(t *testing.T) {
	user := period{whole: ms, now: ms / 2, first: true, grid: ms / 2}
	user.hit(1)
	user.renewed(ms, ms/2, 2)
	for range 7 {
		user.hit(3)
	}
	half := user
	half.renewed(ms*5/4, ms/2+14*ms, 4) // 14 periods, 7 hits
	late := period{whole: ms, now: ms / 2, first: true, grid: ms / 2}
	late.hit(1) // read after two more periods
	late.renewed(ms, 3*ms/2, 2)
	late.hit(1)
	late.hit(1)
	for range 10 {
		late.hit(3)
	}
	never := period{whole: ms, now: ms, first: true, grid: ms}
	for _, c := range []struct {
		name    string
		p       period
		counted uint64
		want    uint64
	}{
		{"short", never, 9 * ms, 0}, {"all of it", never, 20 * ms, 20 * ms},
		{"none of it", user, ms/2 + 7*ms, 0}, {"none after a late first hit", late, 3*ms/2 + 10*ms, 0},
		{"half of it", half, ms/2 + 14*ms, 7 * ms},
		{"and of a later period", half, ms/2 + 14*ms + 5*ms, 11 * ms},
	} {
		expect.Equal(t, c.p.inKernel(c.counted), c.want, "%s: ns in the kernel", c.name)
	}
}

// kernel simulates the kernel's timer for a thread that works in bursts: a hit is late, and a hit that is due
// when the thread stops comes soon after the thread runs again.
type kernel struct {
	burst, late, again uint64
	at, due            uint64 // in nanoseconds of CPU time: now, and when the timer is due
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
	p.now = firstPeriod(p.whole, shortestPart, 0, draw)
	p.grid = p.now
	k.due = p.now
	first := 0
	const hits = 20000
	for range hits {
		if k.next(p.now) < 300000 {
			first++
		}
		if _, due := p.hit(k.at); due && (renew || p.first) {
			next := p.whole
			if renew {
				next = p.next(k.at, draw)
			}
			p.renewed(next, k.at, k.at)
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

// The tool reads hits in batches and changes the period only then. Neither the batches nor the changes make
// hits rarer than one for each whole period.
func TestHitsInBatches(t *testing.T) {
	const whole, all = 1003 * ms / 1000, 4000 * ms
	for name, c := range map[string]struct{ batch, seen uint64 }{
		"each hit at once":         {ms / 10, 100},
		"ten hits at once":         {10 * ms, 100},
		"a hundred hits at once":   {100 * ms, 100},
		"a fifth of them recorded": {10 * ms, 20},
		"few of them recorded":     {100 * ms, 3},
	} {
		draw := random()
		p := period{whole: whole, now: whole}
		due := p.now
		for end := c.batch; end <= all; end += c.batch {
			renewed := false
			for ; due <= end; due += p.now {
				if draw(100) >= c.seen {
					continue
				}
				if _, renew := p.hit(due); renew && !renewed {
					renewed = true
				}
			}
			if renewed {
				next := p.next(end, draw)
				p.renewed(next, end, end)
				due = end + next
			}
		}
		want := float64(all) / whole * float64(c.seen) / 100
		if got := float64(p.hits); math.Abs(got-want) > 0.01*want+2*math.Sqrt(want*(1-float64(c.seen)/100)) {
			t.Errorf("%s: %.0f hits, want %.0f", name, got, want)
		}
	}
}
