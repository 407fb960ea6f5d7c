package cpuring

// period decides which hits of a clock count, and when the clock gets a new period.
type period struct {
	whole    uint64 // nanoseconds that a hit represents
	now      uint64 // nanoseconds until the next hit
	first    bool   // the first period is not over
	keep     bool   // a first period that is long enough stays: the clock is of Config.Short
	grid     uint64 // the first period, if it is random; 0 = it is like all others
	since    uint64 // when the first period ended, by the records' clock
	start    uint64 // when the current period began
	atStart  uint64 // the clock's count then
	fresh    uint64 // hits since then
	early    uint64 // hits at multiples of grid
	hits     uint64 // hits that count
	expected uint64 // hits before start if the kernel had dropped none
	behind   int64  // nanoseconds before start for which there was no hit; below 0: hits came too often
}

// shortestPart bounds a first period: it is at least a whole period divided by shortestPart. Until the tool
// has read the first hit, the kernel copies the thread up to that many times as often. stretchMinPart is the
// same for Config.Short: there, a thread that always runs less than the bound would never be sampled.
const (
	shortestPart   = 16
	stretchMinPart = 128
)

// leastFirst is the shortest first period in nanoseconds. The kernel skips hits that become due during a hit,
// and then the number of hits times the period is less than the CPU time.
const leastFirst = 40_000

// firstPeriod draws a first period: any length up to the whole period is equally likely. Lengths that are too
// short for the kernel become the shortest allowed one: a part of the whole period, leastFirst, or 5/4 of the
// time that a hit takes, whichever is longest.
func firstPeriod(whole, parts, hitCost uint64, random func(n uint64) uint64) uint64 {
	return max(random(whole)+1, whole/parts, min(whole, max(leastFirst, hitCost+hitCost/4)))
}

// renewAfter is the number of hits after which a clock gets a new period. A program whose bursts are as long
// as a fixed period would always be hit at the same place: the kernel moves a timer that is due at the end of
// a burst to the beginning of the next. Changing the period drops the time since the last hit, so it is not
// done at every hit.
const renewAfter = 8

// nextPeriod draws a period around the whole one.
func nextPeriod(whole uint64, random func(n uint64) uint64) uint64 {
	return whole - whole/4 + random(whole/2+1)
}

// hit reports whether a hit at the given time counts, and whether the clock needs a new period. The
// tool may have changed the period before it reads an earlier hit. Such a hit counts, but does not request
// another change.
func (p *period) hit(time uint64) (counts, renew bool) {
	if p.grid > 0 && (p.first || time < p.since) {
		if counts = p.onGrid(); counts {
			p.hits++
		}
		return counts, p.first && (!p.keep || p.grid < p.whole/fewOnGrid)
	}
	p.hits++
	if time < p.start {
		return true, false
	}
	p.fresh++
	return true, p.fresh >= renewAfter
}

// fewOnGrid is how often, at most, the kernel may copy a thread in each whole period. A clock of Config.Short
// keeps its first period if that is long enough.
const fewOnGrid = 8

// onGrid reports whether a hit at a multiple of the first period counts. The first hit counts, and then the
// hit that is nearest to the end of each whole period. If it was the first hit after that end, the hits would
// be late by half a first period on average. A thread that runs for a few periods would have too few hits
// then, and too few of them would be at the end of its work.
func (p *period) onGrid() bool {
	ran := p.early*p.grid + p.grid/2 // since the first hit
	p.early++
	return p.early == 1 || ran/p.whole != (ran-p.grid)/p.whole
}

// gridHits returns how many hits onGrid accepts up to a count, if the kernel drops none.
func (p *period) gridHits(counted uint64) uint64 {
	if counted < p.grid {
		return 0
	}
	return 1 + ((counted/p.grid-1)*p.grid+p.grid/2)/p.whole
}

// next draws the next period. Each change of the period drops the time since the last hit. So next adds the
// time that no hit represents to behind, and corrects the period by it. The correction is spread over as many
// hits as the current period had, at least renewAfter. It is at most a quarter of a whole period.
func (p *period) next(counted uint64, random func(n uint64) uint64) uint64 {
	next := int64(nextPeriod(p.whole, random))
	ran := counted - min(p.atStart, counted)
	hits := ran / p.now
	if p.first && counted >= p.grid { // the first hit represents the time before it
		ran, hits = counted-p.grid, p.gridHits(counted)-1
	}
	p.behind += int64(ran) - int64(hits*p.whole)
	most := int64(p.whole / 4)
	return uint64(next - min(max(p.behind/int64(max(hits, renewAfter)), -most), most))
}

// renewed starts the period next at the given time, when the clock's count was counted.
func (p *period) renewed(next, counted, time uint64) {
	p.expected = p.expectedAt(counted)
	if p.first {
		p.since, p.expected = time, p.gridHits(counted)
	}
	p.first, p.now, p.start, p.atStart, p.fresh = false, next, time, counted, 0
}

// expectedAt returns the number of hits up to a count, if the kernel had dropped none.
func (p *period) expectedAt(counted uint64) uint64 {
	if p.first {
		return p.hits
	}
	return p.expected + (counted-min(p.atStart, counted))/p.now
}

// fewHits is how many whole periods a clock must have counted before missing hits are attributed to the
// kernel.
const fewHits = 10

// inKernel returns the nanoseconds of counted in which hits were dropped because the thread
// was in the kernel.
func (p *period) inKernel(counted uint64) uint64 {
	switch {
	case counted < fewHits*p.whole:
		return 0
	case p.hits == 0:
		return counted
	}
	expected := p.expectedAt(counted)
	return (expected - min(p.hits, expected)) * p.whole
}

// Totals is what is known about a thread's CPU time.
type Totals struct {
	Counted  uint64 // nanoseconds while it had a clock, time in the kernel included
	InKernel uint64 // part of Counted without hits, since the kernel is excluded
	Located  uint64 // what the hits represent; by chance, it may be more than Counted
}

func (t *Totals) add(o Totals) {
	t.Counted += o.Counted
	t.InKernel += o.InKernel
	t.Located += o.Located
}
