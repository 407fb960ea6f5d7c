package outside

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/probe"
)

const msec = int64(time.Millisecond)

// What looks at a process's clock show: nobody has run until a look that another one, a
// tick and more later, agrees with.
func TestClock(t *testing.T) {
	var c clock
	for i, s := range []struct {
		at, ran int64 // milliseconds, anything
		lost    bool  // the clock is not told
		still   bool
		till    int64
	}{
		{100, 7, false, false, 0}, {180, 7, false, true, 100}, {260, 7, false, true, 180}, {265, 7, false, true, 180}, {272, 7, false, true, 260},
		{352, 8, false, false, 0}, {360, 8, false, true, 0}, {361, 8, false, true, 0}, {362, 8, false, true, 352},
		{442, 0, true, false, 0}, {522, 8, false, false, 0}, {602, 8, false, true, 522},
		{502, 8, false, true, 0}, {582, 8, false, true, 502}, // the time has been set back
	} {
		c.saw(s.at*msec, s.ran, !s.lost)
		if c.idle != s.still || c.lull.till != s.till*msec {
			t.Errorf("look %d: still %v until %d, want %v until %d", i, c.idle, c.lull.till/msec, s.still, s.till)
		}
	}
}

// The clock is looked at rarely where it moves each time, and often again once it does not.
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
	if n := run(10_000, 1); n > 22 {
		t.Errorf("%d looks in ten seconds at a clock that moves", n)
	}
	if n := run(10_000, 1<<40); n < 100 || n > 126 {
		t.Errorf("%d looks in ten seconds at a clock that stands", n)
	}
	if now -= 3_600_000 * msec; !c.due(now) {
		t.Error("not due though the time has been set back")
	}
}

// busy is a made-up thread that runs from and to such times, of which there is an even number,
// on a kernel with ticks.
type busy struct {
	times []int64
	tick  int64
}

// clock is what the process's shows: what has run to its end, and of what runs now what it
// was at the last tick.
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

// sleeps reports whether it does, and until when.
func (b *busy) sleeps(now int64) (until int64, ok bool) {
	i, _ := slices.BinarySearch(b.times, now+1)
	return b.times[i], i%2 == 0
}

// A thread that was visited while it slept is said to have rested until it ran or less, in
// whatever way the kernel's ticks, its runs and the looks fall, and nearly as long as it did.
func TestCalm(t *testing.T) {
	for run := range uint64(300) {
		r := rand.New(rand.NewPCG(run, 11))
		b := busy{tick: []int64{1, 4, 10}[r.IntN(3)] * msec}
		for at := int64(0); at < 200e9 || len(b.times)%2 == 1; b.times = append(b.times, at) {
			at += 1000 + r.Int64N([]int64{msec / 10, 20 * msec, 3000 * msec}[r.IntN(3)])
		}
		step := []int64{15, 100, 300}[r.IntN(3)] * msec
		var c clock
		var l *idleSpan // of the visit
		visited, until := int64(0), int64(0)
		rests := 0
		for now := msec; now < 100e9; now += 1 + r.Int64N(step) {
			c.saw(now, b.clock(now), true)
			if l == c.lull {
				continue
			}
			if l != nil && l.till > until {
				t.Fatalf("run %d: visited at %d, runs at %d, said to rest until %d", run, visited, until, l.till)
			}
			if l != nil && until-visited > 3*step+2*slowTick {
				if rests++; until-l.till > 2*step+2*slowTick {
					t.Fatalf("run %d: visited at %d, runs at %d, said to rest until %d only", run, visited, until, l.till)
				}
			}
			l = nil
			if end, ok := b.sleeps(now); ok {
				l, visited, until = c.lull, now, end
			}
		}
		if rests == 0 {
			t.Errorf("run %d: never rests", run)
		}
	}
}

// The engine sleeps longer while nobody runs, but not for longer than the ring has room.
func TestPaceOfCalm(t *testing.T) {
	now := time.Unix(1000, 0)
	far := now.Add(time.Hour).UnixNano()
	for _, c := range []struct {
		name   string
		period time.Duration
		idle   bool
		due    int64
		want   time.Duration
	}{
		{"100 Hz", 10 * time.Millisecond, false, far, longest},
		{"100 Hz, idle", 10 * time.Millisecond, true, far, maxIdleSleep},
		{"1,000 Hz, idle", time.Millisecond, true, far, longest},
		{"10 Hz, idle", 100 * time.Millisecond, true, far, maxIdleSleep},
		{"idle, a thread is due", 10 * time.Millisecond, true, now.Add(30 * time.Millisecond).UnixNano(), 30 * time.Millisecond},
		{"idle, due is not known", 10 * time.Millisecond, true, 0, 10 * time.Millisecond},
	} {
		e := &Engine{sampler: sampler{period: int64(c.period)}}
		e.due, e.clock.idle = c.due, c.idle
		if got := e.pace(now.Add(10*time.Millisecond), now).Sub(now); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if maxIdleSleep >= beatLate { // the heartbeat would wake, too
		t.Errorf("%v, %v", maxIdleSleep, beatLate)
	}
}

// Whether a process lives is asked four times a second while it is idle, each time else.
func TestLivesLong(t *testing.T) {
	for _, c := range []struct {
		idle     bool
		min, max int
	}{{true, 4, 5}, {false, 10, 11}} {
		asked := 0
		e := &Engine{}
		e.living = func() bool { asked++; return true }
		e.clock.idle = c.idle
		for at := time.Unix(1000, 0); at.Before(time.Unix(1001, 0)); at = at.Add(100 * time.Millisecond) {
			e.lives(at)
		}
		if asked < c.min || asked > c.max {
			t.Errorf("idle %v: asked %d times", c.idle, asked)
		}
		e.living = func() bool { return false }
		if e.lives(time.Unix(1002, 0)) {
			t.Error("lives though it does not")
		}
	}
}

// What is written waits longer while the process is idle.
func TestWaitsWhileCalm(t *testing.T) {
	e := &Engine{sampler: sampler{s: newOutput(nil, io.Discard)}, flushed: time.Unix(1000, 0)}
	for _, c := range []struct {
		idle  bool
		after time.Duration
		want  bool
	}{{false, flushAfter - 1, true}, {false, flushAfter, false}, {true, flushAfter, true}, {true, flushIdle - 1, true}, {true, flushIdle, false}} {
		if e.clock.idle = c.idle; e.waits(e.flushed.Add(c.after)) != c.want {
			t.Errorf("idle %v, after %v: waits %v", c.idle, c.after, !c.want)
		}
	}
}

// A thread that has ended has stood where it was seen for as long as nobody ran, whether a
// visit finds that out or a listing.
func TestEndedAfterRest(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(e *Engine, k *task)
	}{
		{"a visit", func(e *Engine, k *task) { e.visit(k) }},
		{"a listing", func(e *Engine, k *task) { e.gone(k) }},
		{"both", func(e *Engine, k *task) { e.visit(k); e.gone(k) }},
	} {
		out := newOutput(nil, io.Discard)
		e := &Engine{sampler: sampler{s: out, period: 10 * msec}, threadTable: newThreadTable(1 << 30), file: &probe.File{}}
		k := &task{tid: 1 << 30, stat: -1, place: -1, slot: -1, rest: true, visited: 100 * msec, lull: &idleSpan{till: 900 * msec}}
		k.stack.frames = []frame{{IP: 77}}
		c.end(e, k)
		var walls []uint64
		for r := wire.NewReader(bytes.NewReader(out.Out.Bytes())); ; {
			m, err := r.Next()
			if err != nil {
				break
			}
			if s, ok := m.(*wire.Sample); ok && len(s.Frames) == 1 && s.Frames[0].IP == 77 {
				walls = append(walls, s.WallNanos)
			}
		}
		if len(walls) != 1 || walls[0] != uint64(800*msec) {
			t.Errorf("%s: samples of %v", c.name, walls)
		}
	}
}
