package threads

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

const msec = int64(time.Millisecond)

// Equal readings at least a tick apart mean that no thread ran between the clock's last move and the
// first.
func TestClock(t *testing.T) {
	var c clock
	for i, s := range []struct {
		at, ran int64 // milliseconds, anything
		lost    bool  // the clock is not known
		still   bool
		till    int64
	}{
		{100, 7, false, false, 0}, {180, 7, false, true, 100}, {260, 7, false, true, 180},
		{265, 7, false, true, 180}, {272, 7, false, true, 260},
		{352, 8, false, false, 0}, {360, 8, false, true, 0},
		{361, 8, false, true, 0}, {362, 8, false, true, 352},
		{442, 0, true, false, 0}, {522, 8, false, false, 0}, {602, 8, false, true, 522},
		{502, 8, false, true, 0}, {582, 8, false, true, 502}, // the time has been set back
	} {
		c.saw(s.at*msec, s.ran, !s.lost)
		expect.True(t, c.Idle == s.still && c.IdleSpan.Till == s.till*msec,
			"look %d: still %v until %d, want %v until %d", i, c.Idle, c.IdleSpan.Till/msec, s.still, s.till)
	}
}

// The clock is read rarely while it moves, and often while it does not.
func TestClockIsDue(t *testing.T) {
	var c clock
	now, looks := msec, 0
	run := func(ms, step int64) int {
		looks = 0
		for end := now + ms*msec; now < end; now += msec {
			if c.due(now) {
				looks++
				c.saw(now, now/msec/step, true)
			}
		}
		return looks
	}
	n := run(10_000, 1)
	expect.True(t, n <= 22, "%d looks in ten seconds at a clock that moves", n)
	n = run(10_000, 1<<40)
	expect.True(t, n >= 100 && n <= 126, "%d looks in ten seconds at a clock that stands", n)
	now -= 3_600_000 * msec
	expect.True(t, c.due(now), "not due though the time has been set back")
}

// busy is a simulated thread that runs between pairs of times, on a kernel with ticks.
type busy struct {
	times []int64
	tick  int64
}

// clock is the process's clock at now: all finished runs, and the current run up to the last tick.
func (b *busy) clock(now int64) (ran int64) {
	for i := 0; i < len(b.times) && b.times[i] <= now; i += 2 {
		from, to := b.times[i], b.times[i+1]
		if to > now {
			to = max(from, now/b.tick*b.tick)
		}
		ran += to - from
	}
	return ran
}

// sleeps reports whether the thread sleeps at now, and until when.
func (b *busy) sleeps(now int64) (until int64, ok bool) {
	i, _ := slices.BinarySearch(b.times, now+1)
	return b.times[i], i%2 == 0
}

// A thread that was asleep at its poll is reported as resting until shortly before it ran, and never longer.
// This holds for any order of ticks, runs, and readings. The reported rest is nearly as long as the true one.
func TestCalm(t *testing.T) {
	for run := range uint64(300) {
		r := rand.New(rand.NewPCG(run, 11))
		b := busy{tick: []int64{1, 4, 10}[r.IntN(3)] * msec}
		for at := int64(0); at < 200e9 || len(b.times)%2 == 1; b.times = append(b.times, at) {
			at += 1000 + r.Int64N([]int64{msec / 10, 20 * msec, 3000 * msec}[r.IntN(3)])
		}
		step := []int64{15, 100, 300}[r.IntN(3)] * msec
		var c clock
		var l *IdleSpan // as of the poll
		polled, until := int64(0), int64(0)
		rests := 0
		for now := msec; now < 100e9; now += 1 + r.Int64N(step) {
			c.saw(now, b.clock(now), true)
			if l == c.IdleSpan {
				continue
			}
			if l != nil && l.Till > until {
				t.Fatalf("run %d: polled at %d, runs at %d, said to rest until %d", run, polled,
					until, l.Till)
			}
			if l != nil && until-polled > 3*step+2*SlowTick {
				if rests++; until-l.Till > 2*step+2*SlowTick {
					t.Fatalf("run %d: polled at %d, runs at %d, said to rest until %d only", run, polled,
						until, l.Till)
				}
			}
			l = nil
			if end, ok := b.sleeps(now); ok {
				l, polled, until = c.IdleSpan, now, end
			}
		}
		expect.True(t, rests != 0, "run %d: never rests", run)
	}
}

// The next poll is between one and two steps away, at an instant that other threads share.
func TestPollAfter(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct {
		name           string
		period, misses int64
		step           int64
	}{
		{"1,000 Hz, once", ms, 1, 2 * ms}, {"1,000 Hz, more often", ms, 2, 4 * ms},
		{"10,000 Hz", ms / 10, 2, 4 * ms},
		{"100 Hz, once", 10 * ms, 1, 20 * ms}, {"100 Hz, more often", 10 * ms, 2, 40 * ms},
		{"30 Hz", 33 * ms, 2, 33 * ms}, {"a sample in ten seconds", 10_000 * ms, 2, 10_000 * ms},
	} {
		for _, polled := range []int64{1_000_000*ms + 1, 1_000_000*ms + c.step - 1, 999_999_937} {
			got := PollAfter(polled, c.period, int(c.misses))
			expect.True(t, got%c.step == 0 && got-polled >= c.step && got-polled < 2*c.step,
				"%s: %d ns after %d", c.name, got-polled, polled)
		}
	}
}
