package outside

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// stretching returns an engine with stretches for a thread of this process that switches often.
func stretching(t *testing.T) (*Engine, *threads.Task) {
	e, _, _, _ := asking(t)
	e.cpuClock, e.perf.most = sampler.ClockPerf, 100
	e.stretches = threads.PlanStretches(e.Period, false)
	e.stretches.Parts = 10
	e.kernelTime.Open(e.PID, e.Period)
	k := &threads.Task{TID: uint32(unix.Gettid()), Slot: -1, Stat: -1, Place: -1, Event: &fakeEvent{},
		Often: true}
	e.Tasks[k.TID] = k
	t.Cleanup(func() {
		e.closeEvent(k)
		e.kernelTime.Close()
		e.inStretches.Close()
	})
	now := time.Now()
	e.useStretches(now)
	if !e.stretches.On && (os.Geteuid() != 0 || PerfEvents() != nil) {
		t.Skip("SKIPPED-CHECK: the kernel permits no copies of stacks")
	}
	must.True(t, e.stretches.On && e.mayStretch(), "no stretches")
	e.toggleStretch()
	return e, k
}

// At each rate that has stretches, a stretch holds several samples, and the kernel can keep to its period.
func TestPlanStretches(t *testing.T) {
	for _, c := range []struct {
		hertz float64
		rare  bool
		want  bool
	}{
		{0.1, false, false}, {1, false, true}, {10, false, true}, {99, false, true}, {1000, false, true},
		{5000, false, true}, {19, true, true},
	} {
		e := &Engine{cpuClock: sampler.ClockPerf}
		e.Period, e.kernelTime.Kernel = int64(1e9/c.hertz), true
		s := threads.PlanStretches(e.Period, c.rare)
		e.stretches = s
		if expect.Equal(t, e.mayStretch(), c.want, "%v Hz", c.hertz); !c.want {
			continue
		}
		for parts := s.LeastParts; parts <= max(s.LeastParts, s.MostParts); parts++ {
			s.Parts = parts
			s.Start(time.Now(), 1, 0)
			period := e.Period / int64(parts)
			expect.True(t, int64(s.Length) >= 4*period && period >= 50_000,
				"%v Hz, %d parts: stretches of %v, period %d", c.hertz, parts, s.Length, period)
			expect.True(t, !c.rare || s.Length*time.Duration(parts) <= 2*time.Second,
				"%d parts: the agent's shortest interval, 5 s, has no two stretches", parts)
		}
	}
}

// In a stretch, a thread that switches often has copies, and between stretches nothing. It gets its event
// back when it no longer switches often.
func TestStretch(t *testing.T) {
	e, k := stretching(t)
	s := &e.stretches
	expect.True(t, s.Open && k.Stretched && k.Copied && k.KernelHits && k.Event == nil && k.Armed,
		"in a stretch: %+v", *k)
	e.toggleStretch()
	expect.True(t, !s.Open && k.Stretched && !k.Copied && !k.KernelHits && k.Event == nil && k.Armed,
		"between stretches: %+v", *k)
	e.arm(k)
	expect.True(t, k.Event == nil && !k.Copied, "a poll between stretches gave it an event")
	e.toggleStretch()
	expect.True(t, k.Copied, "no copies in the next stretch")
	k.Often, k.Hits = false, 7
	e.toggleStretch()
	e.toggleStretch()
	expect.True(t, !k.Stretched && !k.Copied && k.Event != nil && k.Hits == 0,
		"it switches rarely: %+v", *k)
}

// If the kernel permits no samples of itself, the stretches of a thread show how much of its time was there.
func TestStretchedInKernel(t *testing.T) {
	for _, c := range []struct {
		name        string
		kernel      bool
		spent, hits uint64 // periods
		want        uint64
	}{
		{"a quarter", false, 40, 30, 10},
		{"more samples than time, by chance", false, 40, 41, 0},
		{"too short to tell", false, 20, 15, 0},
		{"the kernel has samples", true, 40, 30, 0},
	} {
		e, _, _, _ := asking(t)
		p := uint64(e.Period)
		e.kernelTime.Kernel, e.Ending = c.kernel, true // so the runtime's tables need not be proven
		k := &threads.Task{TID: 9, Slot: -1, Armed: true, Stretched: true, Weighed: c.spent * p / 2}
		k.Last.Cpu = c.spent * p
		e.stretches.Parts = 1
		e.stretches.Begin(time.Now(), 0, 0)
		k.Enter(threads.Counters{})
		k.Leave(threads.Counters{}, true)
		k.Enter(threads.Counters{Cpu: k.Last.Cpu / 2}) // the first half belongs to the cell too
		for range c.hits {
			e.stretches.Weigh(k, e.Period, false)
		}
		k.Leave(k.Last, true)
		e.account(k, false)
		u := sentUsage(t, e, 9)
		expect.True(t, u.CPUNanos == c.spent*p && u.KernelNanos == c.want*p, "%s: %+v", c.name, u)
	}
}

// A thread whose stack cannot be walked from a copy gets its event back and keeps it.
func TestUncopied(t *testing.T) {
	e, k := stretching(t)
	e.Ending = true // so the runtime's tables need not be proven
	r := copyOf(k.TID)
	r.Kernel = true
	e.inKernel(r)
	must.True(t, k.Stretched && k.KernelLost > 0, "in the kernel: %+v", *k)
	r.Kernel = false
	e.inKernel(r)
	for range 2 {
		e.toggleStretch()
	}
	expect.True(t, !k.Stretched && k.Event != nil && k.Armed && k.Often, "%+v", *k)
}

// If the program takes SIGURG during a stretch, the stretches end. From then on, all samples are copies that
// the kernel makes, without signals.
func TestTakenInStretch(t *testing.T) {
	e, k := stretching(t)
	e.legacy = int(unix.SIGURG)
	e.leaveSIGURG()
	if !e.kernelTime.All && os.Geteuid() != 0 {
		t.Skip("SKIPPED-CHECK: the kernel has no room for copies of all samples")
	}
	expect.True(t, !e.stretches.On && e.inStretches.Rings == nil && !k.Stretched && k.Event != nil &&
		k.Copied && k.KernelHits && k.Armed, "%+v", *k)
	e.toggleStretch() // must not use the closed rings
}

// Without room for the events of a stretch, threads get their usual events for a minute.
func TestStretchesWithoutRoom(t *testing.T) {
	e, k := stretching(t)
	s := &e.stretches
	e.inStretches.Room = 0
	now := time.Now()
	e.updateStretches(now)
	expect.True(t, !s.On && !s.Open && !k.Stretched && k.Event != nil && e.inStretches.Rings == nil,
		"%+v", *k)
	e.toggleStretch() // must not use the closed rings
	expect.True(t, !s.Ready(now.Add(30*time.Second)) && s.Ready(now.Add(2*time.Minute)),
		"refused at %v", s.Refused)
}
