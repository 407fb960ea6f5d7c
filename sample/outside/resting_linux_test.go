package outside

import (
	"bytes"
	"io"
	"maps"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/events"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The engine sleeps longer while no thread runs, but only as long as the ring has room.
func TestPaceIdle(t *testing.T) {
	now := time.Unix(1000, 0)
	far := now.Add(time.Hour).UnixNano()
	for _, c := range []struct {
		name   string
		period time.Duration
		idle   bool
		due    int64
		want   time.Duration
	}{
		{"100 Hz", 10 * time.Millisecond, false, far, threads.Longest},
		{"100 Hz, idle", 10 * time.Millisecond, true, far, 100 * time.Millisecond},
		{"1,000 Hz, idle", time.Millisecond, true, far, threads.Longest},
		{"10 Hz, idle", 100 * time.Millisecond, true, far, maxSleep},
		{"20 Hz", 50 * time.Millisecond, false, far, 200 * time.Millisecond},
		{"20 Hz, idle", 50 * time.Millisecond, true, far, maxSleep},
		{"idle, a thread is due", 10 * time.Millisecond, true,
			now.Add(30 * time.Millisecond).UnixNano(), 30 * time.Millisecond},
		{"idle, due is not known", 10 * time.Millisecond, true, 0, 10 * time.Millisecond},
	} {
		e := &Engine{Base: sampler.Base{Period: int64(c.period)}}
		e.Due, e.Clock.Idle = c.due, c.idle
		expect.Equal(t, e.pace(now.Add(10*time.Millisecond), now).Sub(now), c.want, c.name)
	}
	for _, c := range []struct {
		name   string
		cpus   int
		every  time.Duration
		filled bool
		want   time.Duration
	}{
		{"waits are sampled rarely", 2, time.Second, false, maxSleep},
		{"waits are sampled often", 2, 0, false, 200 * time.Millisecond},
		{"many CPUs", ringHolds/atOnceIdle + 1, time.Second, false, 200 * time.Millisecond},
		{"large stacks", 2, time.Second, true, 200 * time.Millisecond},
	} {
		e := &Engine{Base: sampler.Base{Period: 5e7}, cpus: c.cpus, ringFilled: c.filled}
		e.Due, e.Config.WallEvery = far, c.every
		expect.Equal(t, e.pace(now, now).Sub(now), c.want, c.name)
		// Of two polls a second apart, the second falls into the round that begins a little too early.
		due, late := now.Add(time.Second+5*time.Millisecond), now.Add(time.Second)
		expect.Equal(t, e.dueBy(late) >= due.UnixNano(), c.want == maxSleep, "%s: polled", c.name)
	}
	random := &Engine{Base: sampler.Base{Period: 5e7}, cpus: 2, cpuClock: sampler.ClockRandom}
	random.Config.WallEvery = time.Second
	expect.Equal(t, random.dueBy(now), now.UnixNano(), "rounds of the random clock are more frequent")
	for _, c := range []struct {
		idle   bool
		period int64
		want   time.Duration
	}{{true, 5e7, 10 * time.Second}, {false, 5e7, time.Second}, {true, 1e6, time.Second}} {
		e := &Engine{Base: sampler.Base{Period: c.period}}
		e.Clock.Idle = c.idle
		expect.Equal(t, e.sweepEvery(), c.want, "time between two messages")
	}
	// If a sleep were longer, the heartbeat would wake the tool.
	if maxSleep >= events.SlowBeat || atOnceIdle*sampler.SlowPeriod >= events.BeatLate {
		t.Errorf("%v, %v", maxSleep, events.SlowBeat)
	}
}

// While a process is idle, the engine checks every two seconds whether it lives. Otherwise the answer is
// valid for reader.LivesFor.
func TestLivesLong(t *testing.T) {
	for _, c := range []struct {
		idle     bool
		min, max int
	}{{true, 5, 5}, {false, 100, 100}} {
		asked := 0
		e := &Engine{}
		e.Living = func() bool { asked++; return true }
		e.Clock.Idle = c.idle
		for at := time.Unix(1000, 0); at.Before(time.Unix(1010, 0)); at = at.Add(100 * time.Millisecond) {
			e.lives(at)
		}
		expect.True(t, asked >= c.min && asked <= c.max, "idle %v: asked %d times", c.idle, asked)
		e.Living = func() bool { return false }
		expect.True(t, !e.lives(time.Unix(1012, 0)), "lives though it does not")
	}
}

// Output is buffered longer while the process is idle.
func TestWaitsWhileIdle(t *testing.T) {
	e := &Engine{Base: sampler.Base{Stream: sampler.NewOutput(nil, io.Discard)}, flushed: time.Unix(1000, 0)}
	for _, c := range []struct {
		idle  bool
		after time.Duration
		want  bool
	}{{false, flushAfter - 1, true}, {false, flushAfter, false}, {true, flushAfter, true},
		{true, flushIdle - 1, true}, {true, flushIdle, false}} {
		if e.Clock.Idle = c.idle; e.waits(e.flushed.Add(c.after)) != c.want {
			t.Errorf("idle %v, after %v: waits %v", c.idle, c.after, !c.want)
		}
	}
}

// A thread that ended counts at its last known place for as long as the process was idle, and no longer. The
// result is the same if a poll finds the end, and if a listing finds it.
func TestEndedAfterRest(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct {
		name string
		end  func(e *Engine, k *threads.Task)
	}{
		{"a poll", func(e *Engine, k *threads.Task) { e.poll(k) }},
		{"a listing", func(e *Engine, k *threads.Task) { e.gone(k) }},
		{"both", func(e *Engine, k *threads.Task) { e.poll(k); e.gone(k) }},
	} {
		out := sampler.NewOutput(nil, io.Discard)
		e := &Engine{Base: sampler.Base{Stream: out, Period: 10 * ms},
			Table: threads.NewTable(1 << 30), file: &probe.File{}}
		k := &threads.Task{TID: 1 << 30, Stat: -1, Place: -1, Slot: -1, Rest: true, Polled: 100 * ms,
			IdleSpan: &threads.IdleSpan{Till: 900 * ms}}
		k.Stack.Frames = []wire.Frame{{IP: 77}}
		c.end(e, k)
		var walls, ends []uint64
		for r := wire.NewReader(bytes.NewReader(out.Out.Bytes())); ; {
			m, err := r.Next()
			if err != nil {
				break
			}
			if s, ok := m.(*wire.Sample); ok && len(s.Frames) == 1 && s.Frames[0].IP == 77 {
				walls, ends = append(walls, s.WallNanos), append(ends, uint64(s.TimeUnixNano))
			}
		}
		expect.True(t, len(walls) == 1 && walls[0] == uint64(800*ms) && ends[0] == uint64(900*ms),
			"%s: samples of %v until %v", c.name, walls, ends)
	}
}

// The CPU time of a command before its first sample is in the process's time, with its cause. That of a
// process that has been attached to is in neither.
func TestMissStart(t *testing.T) {
	for _, command := range []bool{true, false} {
		out := sampler.NewOutput(nil, io.Discard)
		const none = 1 << 27
		e := &Engine{Base: sampler.Base{Stream: out, PID: none}, Table: threads.NewTable(none), ranBefore: 7}
		if command {
			e.missStart()
		}
		e.ranSince = 100 - uint64(e.ranBefore)
		e.accountProcess()
		got := map[uint8]uint64{}
		for r := wire.NewReader(bytes.NewReader(out.Out.Bytes())); ; {
			m, err := r.Next()
			if err != nil {
				break
			}
			if u, ok := m.(*wire.Usage); ok {
				got[u.Cause] += u.CPUNanos
			}
		}
		want := map[uint8]uint64{wire.CauseShort: 93}
		if command {
			want = map[uint8]uint64{wire.CauseStartup: 7, wire.CauseShort: 100}
		}
		expect.True(t, maps.Equal(got, want), "command %v: %v", command, got)
	}
}

// A young thread whose stack the kernel copies keeps its event silent when it ages. Otherwise it would be
// sampled twice.
func TestCopiedDoesNotAge(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const period = 10_000_000
	e := &Engine{Base: sampler.Base{Period: period}, Table: threads.NewTable(os.Getpid())}
	defer func() { e.kernelTime.Close() }()
	event := &fakeEvent{}
	k := &threads.Task{TID: uint32(unix.Gettid()), Event: event, Phase: threads.Young, Slot: -1, Born: 1}
	if e.useCopies(k); !k.Copied {
		t.Skip("SKIPPED-CHECK: the kernel permits no copies here, so a copied thread was not tried")
	}
	silent := event.period
	e.age(k, 1e18)
	if e.overflowed(k); event.period != silent || silent <= period { // an overflow before the copies
		t.Errorf("period %d, then %d", silent, event.period)
	}
}

// A thread that takes the signal of its samples after it has blocked it for a moment does not block it. After
// a time in which samples may be missing, it does.
func TestTookSignal(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	e := &Engine{Table: threads.NewTable(os.Getpid())}
	k := &threads.Task{TID: uint32(unix.Gettid()), Stat: -1}
	for now := (threads.Counters{}); now.Cpu == 0; { // it changes with the tick
		now, _ = e.Kernel.Counters(k)
		k.Last = now
	}
	for _, c := range []struct {
		name   string
		period int64
		since  uint64
		want   bool
	}{
		{"a moment", 1e12, k.Last.Cpu, false},
		{"long enough for many samples", 1, 0, true},
	} {
		e.Period = c.period
		k.Block()
		must.True(t, k.Blocks && k.BlocksSince == k.Spent(), "%s: since %d", c.name, k.BlocksSince)
		k.BlocksSince = c.since
		e.tookSignal(k)
		expect.Equal(t, k.Blocks, c.want, "%s: blocks", c.name)
		k.Blocks = false
	}
}

// Missing samples are attributed to blocked signals only if the thread was seen to block one that is pending.
func TestNoteBlocked(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const period = 10_000_000
	e := &Engine{Base: sampler.Base{Period: period},
		Table: threads.NewTable(os.Getpid()), legacy: int(unix.SIGURG)}
	defer func() { e.kernelTime.Close() }()
	e.file, _ = probeFile(t)
	task := func(spent uint64) *threads.Task {
		return &threads.Task{TID: uint32(unix.Gettid()), Last: threads.Counters{Cpu: spent},
			Weighed: 2 * period, Event: &fakeEvent{}}
	}
	check := func(name string, spent uint64, want bool) {
		t.Helper()
		k := task(spent)
		k.Looked = true
		e.noteBlocked(k)
		expect.Equal(t, k.Blocks, want, name)
	}
	check("not blocked", 20*period, false)
	set := unix.Sigset_t{Val: [16]uint64{1 << (unix.SIGURG - 1)}}
	var old unix.Sigset_t
	must.Do(t, unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old))
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	check("blocked, none pending", 20*period, false)
	must.Do(t, unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGURG))
	check("blocked and pending", 20*period, true)
	check("few samples are missing", 4*period, false)
	for spent, want := range map[uint64]bool{settled: false, settled + 1: true} {
		k := task(spent)
		e.noteBlocked(k)
		expect.Equal(t, k.Looked, want, "looked at a thread that ran for %d ns", spent)
	}
}

// While the runtime's tables are not verified, the next round is due at the next tick, because a round
// verifies them, and the process waits for that when it exits.
func TestDueUntilVerified(t *testing.T) {
	for _, verified := range []bool{false, true} {
		e, mem, _, _ := asking(t)
		e.file.Hold(verified) // the opposite of what is right
		e.Plain, e.events = verified, events.New(&e.Base, e, e.file)
		e.heartbeat = events.StartHeartbeat(e.file, false)
		must.Do(t, e.round())
		e.heartbeat.Stop()
		now := time.Now()
		expect.Equal(t, e.pace(now.Add(time.Millisecond), now).Sub(now) > time.Millisecond, verified,
			"waits longer, verified %v", verified)
		expect.Equal(t, mem.get(inHeader, headHold) == 0, verified, "no wait at the exit, verified %v",
			verified)
	}
}
