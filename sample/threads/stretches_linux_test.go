package threads

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// Stretches cover one of Parts of the time, and each moment as often as any other.
func TestCells(t *testing.T) {
	for _, c := range []struct {
		parts, events int
		cell          time.Duration
	}{
		{50, 10, 250 * time.Millisecond}, {4, 2, 30 * time.Millisecond}, // LeastCell
		{4, 50, 300 * time.Millisecond}, // as long as its events need
		{20, 4096, LongestCell},
	} {
		s := Stretches{Parts: c.parts, Shortest: 5 * time.Millisecond, LeastCell: 30 * time.Millisecond}
		draws := rand.New(rand.NewPCG(1, 2))
		began, open := time.Now(), time.Duration(0)
		now, early := began, 0
		const cells = 20000
		s.Start(now, c.events, draws.Float64())
		for range cells {
			if now = s.Next; now.Sub(began)%c.cell < c.cell/4 {
				early++
			}
			s.Begin(now, 0, c.events)
			open += s.Length
			now = s.Next
			s.End(now, draws.Float64())
		}
		share := float64(open) / float64(now.Sub(began))
		expect.True(t, math.Abs(share*float64(c.parts)-1) < 0.01, "%+v: open for %.4f of the time", c, share)
		expect.True(t, math.Abs(float64(early)/cells-0.25) < 0.03,
			"%+v: %d of %d begin in a quarter of their cells", c, early, cells)
	}
}

// Threads that switch often have stretches, the rarer the more they switch. Processes that create many
// threads have none.
func TestStretchesWanted(t *testing.T) {
	s := Stretches{Cost: 0.01, Shortest: time.Millisecond, MostParts: 50}
	often, rare := &Task{Stretched: true}, &Task{Stretched: true}
	tasks := map[uint32]*Task{1: often, 2: rare}
	now := time.Now()
	for i, c := range []struct {
		turns   uint64 // per second
		cpu     float64
		created int
		on      bool
		parts   int
	}{
		{9000, 1, 50, false, 0}, // before the first count
		{1900, 1, 0, false, 1},
		{9000, 1, 8, true, 9},
		{90000, 1, 0, true, 50},
		{1500, 1, 0, true, 1},
		{900, 1, 0, false, 1},
		{3000, 0.5, 0, true, 6},
		{1500, 0.01, 0, true, 6}, // as if it had used a quarter of a processor
		{90, 0.01, 0, false, 1},
		{9000, 1, 9, false, 9},
	} {
		passed := countEvery
		if i == 1 || i == 2 {
			passed = countSoon
		}
		now = now.Add(passed)
		often.Last.Turns += uint64(float64(c.turns) * passed.Seconds())
		often.Last.Cpu += uint64(c.cpu * float64(passed))
		rare.Last.Turns += 50
		rare.Last.Cpu += uint64(passed)
		s.Created = c.created
		s.On = s.Wanted(now, tasks)
		expect.True(t, s.On == c.on, "%d: %v, want %v", i, s.On, c.on)
		must.True(t, i == 0 || s.Parts == c.parts, "%d: %d parts, want %d", i, s.Parts, c.parts)
		expect.True(t, !rare.Often && s.Wanted(now.Add(countSoon/2), tasks) == s.On,
			"%d: another answer before it is due, or stretches for the other thread", i)
	}
	often.Stretched, often.Event = false, nil
	often.Last.Turns += 100000
	now = now.Add(countEvery)
	expect.True(t, !s.Wanted(now, tasks) && !often.Often, "a thread without an event")
	often.Stretched, s.LeastParts = true, 20
	often.Last.Turns, often.Last.Cpu = often.Last.Turns+12000, often.Last.Cpu+uint64(countEvery)
	s.Wanted(now.Add(countEvery), tasks)
	expect.Equal(t, s.Parts, 20, "parts")
}

// The more a thread needs for a hit, the fewer hits a stretch has.
func TestFit(t *testing.T) {
	const ms = 1_000_000
	for _, c := range []struct {
		period      int64
		cost        uint64
		parts, want int // before and after
	}{
		{ms, 5_000, 20, 20}, {ms, 50_000, 20, 2}, {ms, 50_000, 4, 2}, {ms, 100_000, 20, 2},
		{10 * ms, 50_000, 50, 25}, {10 * ms, 0, 50, 50}, {ms / 5, 5_000, 4, 4}, {ms / 5, 50_000, 4, 2},
	} {
		s := PlanStretches(c.period, false)
		s.Parts = c.parts
		s.Fit(c.cost, c.period)
		expect.Equal(t, s.Parts, c.want, "parts", c.period, c.cost)
	}
}

// The hits' own time is taken off from the first stretch whose hits were counted.
func TestHitsOwnTime(t *testing.T) {
	const ms = 1_000_000
	s := PlanStretches(10*ms, false)
	s.Parts = 50
	s.Fit(25_000, 10*ms)
	s.Start(time.Now(), 1, 0)
	s.Begin(time.Now(), 0, 1)
	s.Count(20, 10)
	s.End(time.Now(), 0)
	expect.Equal(t, s.Weigh(&Task{}, 10*ms, false), 7.5*ms, "ns of a period of 10 ms, a quarter is hits")
}

// Each event of a stretch is open for as long as the others.
func TestArmed(t *testing.T) {
	s := Stretches{Parts: 4, Shortest: 5 * time.Millisecond}
	now := time.Now()
	s.Start(now, 0, 0)
	s.Begin(now, 1000, 0)
	s.Armed(200_000)
	end := 1000 + uint64(s.Length) + 100_000
	expect.True(t, s.Next.Sub(now) == s.Length+100*time.Microsecond && !s.Late(end) && s.Late(end+1),
		"the stretch ends after %v", s.Next.Sub(now))
}

// Work that comes from outside takes as long in stretches as at other times, while switches take longer. The
// tool ends stretches late while the program computes. The samples nevertheless show how much time user code
// takes, also in a thread that switches often half of the time only.
func TestStretchesSlow(t *testing.T) {
	type phase struct {
		user           float64 // share of the wall time in user code
		kernel, inside float64 // the same in the kernel, outside of stretches and inside
		sampled        float64 // share of the kernel time in a stretch that has samples
		late           time.Duration
		done           float64 // how much of the work is done in a stretch, compared to other times
	}
	spinning, computing := phase{0.3, 0.1, 0.3, 0.6, 0, 1}, phase{0.8, 0, 0, 1, 3 * time.Millisecond, 1}
	loop := phase{0.3, 0.1, 0.3, 0.6, 0, 0.7}
	for _, c := range []struct {
		name   string
		phases []phase // two seconds each
		kernel bool
		cells  int
		limit  float64
	}{
		{"switches", []phase{spinning}, true, 4000, 0.04},
		{"switches for a short time", []phase{spinning}, true, 160, 0.1},
		{"computes", []phase{computing}, true, 4000, 0.04},
		{"waits until its work is done before it begins more", []phase{loop}, true, 4000, 0.04},
		{"both", []phase{spinning, computing}, true, 4000, 0.06},
		{"the kernel permits no samples of itself", []phase{spinning}, false, 4000, 0.04},
		{"for a short time", []phase{spinning}, false, 160, 0.1},
	} {
		const period, parts, length = int64(1e6), 10, 5 * time.Millisecond
		const hitCost, perCounted = 8e3, 2
		const copies = 1 - hitCost*perCounted*parts/float64(period)
		s, k := Stretches{Parts: parts, MostParts: parts, Shortest: length}, &Task{}
		r := rand.New(rand.NewPCG(1, 2))
		s.Fit(hitCost, period)
		s.Parts = parts
		now, used := time.Now(), Counters{}
		user, kernel := make([]float64, len(c.phases)), make([]float64, len(c.phases))
		truth := make([]float64, len(c.phases))
		pass := func(d time.Duration, busy, done float64) {
			now = now.Add(d)
			used.Cpu += uint64(busy * float64(d))
			used.Turns += uint64(done * float64(d) / 1e4)
		}
		s.Start(now, 0, 0)
		for i := range c.cells {
			n := i / 40 % len(c.phases)
			p := c.phases[n]
			truth[n] += p.user * float64(length) * (parts - 1 + p.done)
			pass(max(s.Next.Sub(now), 0), p.user+p.kernel, 1)
			s.Begin(now, uint64(now.UnixNano()), 0)
			k.Enter(used)
			begin, from, own := now, used.Cpu, p.done*p.user/copies
			pass(length+p.late, min(own+p.inside, 1), p.done)
			cpu := float64(used.Cpu - from)
			for x := r.Float64() * float64(period) / parts; x < cpu; x += float64(period) / parts {
				if s.Late(uint64(begin.UnixNano()) + uint64(x/cpu*float64(now.Sub(begin)))) {
					continue
				}
				switch draw := r.Float64() * (own + p.inside); {
				case draw < own:
					user[n] += float64(s.Weigh(k, period, false))
				case c.kernel && draw < own+p.inside*p.sampled:
					kernel[n] += float64(s.Weigh(k, period, true))
				}
			}
			if in, before, whole := k.Leave(used, true); whole {
				s.Left(now, in, before)
			}
			s.Count(perCounted*10, 10)
			s.End(now, r.Float64())
		}
		all, sampled := float64(used.Cpu), 0.
		for n := range c.phases {
			sampled += user[n] + kernel[n]
			expect.True(t, math.Abs(user[n]/truth[n]-1) < c.limit,
				"%s, phase %d: %.0f ms of user code, %.0f are true", c.name, n, user[n]/1e6, truth[n]/1e6)
		}
		located := all - float64(k.NotLocated(uint64(all), period))
		if c.kernel {
			located = all
		}
		expect.True(t, math.Abs(sampled/located-1) < c.limit, "%s: samples of %.0f ms, %.0f of %.0f ms are located",
			c.name, sampled/1e6, located/1e6, all/1e6)
	}
}

// A thread that is seldom in the kernel gets long periods there, and short ones once it is there often.
func TestAdapt(t *testing.T) {
	const period = int64(1e6)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var c Copies
	c.Open(os.Getpid(), period)
	if !c.Kernel && (os.Geteuid() != 0 || !perfPermitted()) {
		t.Skip("SKIPPED-CHECK: the kernel permits no samples of itself")
	}
	defer c.Close()
	k, reads, room := &Task{TID: uint32(unix.Gettid())}, 0, c.Room
	must.True(t, c.Add(k, false) && k.KernelHits && k.KernelEvery == 1, "%+v", *k)
	for _, s := range []struct {
		weighed, kernel float64 // more than before, periods
		every           uint64
		reads           int
	}{{255, 0, 1, 0}, {1, 31, 8, 1}, {256, 31, 8, 2}, {256, 32, 1, 3}, {256, 40, 1, 4}} {
		k.Weighed += uint64(s.weighed * float64(period))
		k.KernelTime += uint64(s.kernel * float64(period))
		c.Adapt(k, period, func() { reads++ })
		expect.True(t, k.KernelEvery == s.every && reads == s.reads && k.KernelHits && c.Room == room-1,
			"%+v: every %d, %d reads, room for %d of %d", s, k.KernelEvery, reads, c.Room, room)
		hits, spent := hitsIn(k.TID, &c, 160*time.Millisecond)
		share := float64(hits) * float64(k.KernelEvery) * float64(period) / float64(spent)
		expect.True(t, share > 0.4 && share < 2.5, "%+v: %d hits represent %.2f of %v", s, hits, share, spent)
	}
	k.Copied = true
	k.Weighed += 256 * uint64(period)
	c.Adapt(k, period, func() { reads++ })
	expect.Equal(t, reads, 4, "a thread whose user time is copied too")
	c.Remove(k)
	expect.Equal(t, c.Room, room)
}

// perfPermitted reports whether the kernel permits perf events of the process's own user code.
func perfPermitted() bool {
	e, err := perfevent.OpenClock(os.Getpid(), -1, perfevent.Attr{Period: 1 << 62, ExcludeKernel: true})
	if err == nil {
		e.Close()
	}
	return err == nil
}

// hitsIn returns the hits of the calling thread while it does little more than calls of the kernel, and the
// CPU time that it spends there.
func hitsIn(tid uint32, c *Copies, how time.Duration) (hits int, spent time.Duration) {
	var from, to unix.Timespec
	page := make([]byte, 1<<20)
	file, _ := os.Open("/dev/zero")
	defer file.Close()
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &from)
	for spent < how {
		file.Read(page)
		unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &to)
		spent = time.Duration(to.Nano() - from.Nano())
		c.Rings.Read(func(r *perfevent.Record) {
			if r.TID == tid && r.Kernel {
				hits++
			}
		})
	}
	return hits, spent
}

// Without rings, the kernel is not sampled.
func TestCopiesWithoutRings(t *testing.T) {
	c := Copies{Kernel: true, Tried: time.Now()} // so it is too soon to open them
	c.Open(os.Getpid(), 1e6)
	expect.True(t, c.Rings == nil && !c.Kernel && !c.Add(&Task{TID: 1}, true) && !c.MayCopy(0) &&
		c.Lost() == 0, "%+v", c)
}
