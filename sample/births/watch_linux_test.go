package outside

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/alarm"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// bearing returns an engine with a period of an hour, so that no thread gets older than half of it. born
// stores the birth of a thread that this thread creates now, and returns its time.
func bearing(t *testing.T) (e *Engine, born func(tid uint32) int64) {
	t.Helper()
	e, _, _, _ = asking(t)
	e.Period, e.Table.Came = int64(time.Hour), e.came
	rings, err := cpuring.NewNewborns(os.Getpid(), uint64(e.Period))
	if errors.Is(err, perfevent.ErrRefused) {
		t.Skipf("SKIPPED-CHECK: %v", err)
	}
	must.Do(t, err)
	t.Cleanup(rings.Close)
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	pid, parent := uint32(os.Getpid()), uint32(unix.Gettid())
	e.births = births{pid: pid, rings: rings, names: map[uint32]string{}, early: map[uint32]string{}}
	return e, func(tid uint32) int64 {
		at := perfevent.Now()
		e.births.note(&perfevent.Record{Type: perfevent.Fork, PID: pid, TID: tid, Parent: parent, Time: at})
		return int64(at)
	}
}

// At a low rate, a thread with copies is opened only once it has lived for half a period. If it ends sooner,
// it costs no system call. The period of its event is not short.
func TestBirthsWait(t *testing.T) {
	e, born := bearing(t)
	e.addForked(born(1))
	expect.True(t, e.Tasks[1] != nil, "the first thread of a creator has no copies, and waits")
	calls := e.Kernel.Calls
	at := born(2)
	e.births.note(&perfevent.Record{Type: perfevent.Fork, PID: 1, TID: 20, Time: uint64(at)}) // a process
	e.addForked(at)
	e.births.note(&perfevent.Record{Type: perfevent.Exit, PID: uint32(e.PID), TID: 2, Time: uint64(at + 1)})
	e.addForked(at + e.Period)
	expect.True(t, len(e.Tasks) == 1 && e.Kernel.Calls == calls, "a thread that ended soon was opened")
	at = born(3)
	e.addForked(at + e.Period) // the wall clock may be set meanwhile
	must.True(t, e.Tasks[3] == nil && len(e.births.forked) == 1, "opened too soon")
	e.births.forked[0].Time -= uint64(e.Period / 2)
	e.addForked(at - e.Period)
	k := e.Tasks[3]
	must.True(t, k != nil && k.Birth != nil && len(e.births.forked) == 0, "not opened: %+v", k)
	phase, period, keep := e.beginning(k, k.Born)
	whole := k.Period(e.Period)
	expect.True(t, phase == threads.Young && period >= whole/17 && period <= whole/8 &&
		uint64(keep)*whole/probe.Thinning == period,
		"phase %d, %d of %d overflows, each %d ns", phase, keep, probe.Thinning, period)

	e.addForked(born(5))
	e.births.rings.Close() // the copies end
	e.addForked(at)
	expect.True(t, e.Tasks[5] != nil, "a thread without copies waits")
}

// If the listing finds a thread before its birth is read, the thread still gets its copies, even if it has
// ended.
func TestBirthsListed(t *testing.T) {
	e, born := bearing(t)
	e.addForked(born(1))
	at := born(2)
	e.addForked(at)
	e.Add(2, at)
	expect.True(t, e.Tasks[2].Birth != nil, "the birth of a waiting thread is not used")
	e.Add(3, at)
	born(3)
	e.births.note(&perfevent.Record{Type: perfevent.Exit, PID: uint32(e.PID), TID: 3, Time: perfevent.Now()})
	e.addForked(at)
	expect.True(t, e.Tasks[3].Birth != nil, "the birth of an ended thread is not used")
	expect.Equal(t, len(e.births.forked), 0, "threads that wait")
}

// copyOf returns a copy that the kernel made of a thread's stack.
func copyOf(tid uint32) *perfevent.Record {
	return &perfevent.Record{Type: perfevent.Sample, TID: tid, Regs: make([]byte, 17*8),
		Stack: make([]byte, 8)}
}

// A sample of a thread that waits counts as one of its samples once the thread is added.
func TestBirthsWeighed(t *testing.T) {
	e, born := bearing(t)
	e.addForked(born(1))
	at := born(2)
	born(3)
	e.addForked(at)
	e.copied(copyOf(2), 0, e.Period)
	e.Add(2, at) // the listing has found it
	e.births.forked[1].Time -= uint64(e.Period / 2)
	e.addForked(at)
	must.True(t, e.Tasks[2] != nil && e.Tasks[3] != nil, "threads are missing")
	expect.Equal(t, e.Tasks[2].Weighed, uint64(e.Period), "thread 2")
	expect.Equal(t, e.Tasks[3].Weighed, 0, "thread 3")
	e.copied(copyOf(3), 0, e.Period)
	expect.Equal(t, e.Tasks[3].Weighed, uint64(e.Period), "thread 3 after its sample")
}

// Of a copied thread whose first period is sampled, the first copy is not used, unless the thread had used
// that period before it got its clock.
func TestFirstCopy(t *testing.T) {
	e, born := bearing(t)
	e.addForked(born(1))
	e.addForked(born(2))
	birth := e.births.pending(2).copies
	for atEvent, want := range map[uint64][]uint64{
		0:                    {0, 1, 2},
		uint64(e.Period) - 1: {0, 1, 2},
		uint64(e.Period):     {1, 2, 3},
	} {
		k := &threads.Task{TID: 2, Stat: -1, Place: -1, Slot: -1, KernelHits: true, KernelEvery: 1,
			Copied: true, Birth: birth, AtEvent: atEvent}
		e.Tasks[2] = k
		for i, periods := range want {
			e.inKernel(copyOf(2))
			expect.Equal(t, k.Weighed, periods*uint64(e.Period), "%d ns at first, %d copies", atEvent, i+1)
		}
	}
}

// The hits of a thread's own event in its first period are not used, because its copies sample that period.
// The thread may have ended before its hits are read.
func TestFirstHit(t *testing.T) {
	e, born := bearing(t)
	e.addForked(born(1))
	e.addForked(born(2))
	hit := probe.Record{TID: 2, Why: probe.ClockHit, Time: perfevent.Now(), Regs: make([]uint64, 17)}
	e.births.rings.Close() // the copies end before the hits are read
	later := perfevent.Now()
	for _, c := range []struct {
		name string
		tid  uint32
		time uint64
		used int64 // processor time at the hit
		want int
	}{
		{"in the first period", 2, hit.Time, e.Period, 0},
		{"in the second period", 2, hit.Time, e.Period + 1, 1},
		{"after the copies", 2, later, e.Period, 1},
		{"without copies", 1, hit.Time, 1, 1},
	} {
		e.Stats.Timed = 0
		hit.TID, hit.Time, hit.Since = c.tid, c.time, uint64(c.used)
		e.record(&hit)
		expect.Equal(t, int(e.Stats.Timed), c.want, "%s: hits of a thread that has ended", c.name)
	}
}

// At a high rate, threads are opened at once: they may use several periods meanwhile.
func TestBirthsAtOnce(t *testing.T) {
	e, born := bearing(t)
	e.addForked(born(1))
	e.Period = 1e6
	e.addForked(born(2))
	must.True(t, e.Tasks[2] != nil, "a thread waits")
	phase, period, _ := e.beginning(e.Tasks[2], e.Tasks[2].Born)
	expect.True(t, phase == threads.Young && period <= probe.MostYoung, "phase %d, %d ns", phase, period)
}

// A new thread has the name of its creator until it sets its own, even if it ends before it is opened.
func TestBirthsNamed(t *testing.T) {
	e, born := bearing(t)
	creator := uint32(unix.Gettid())
	e.Tasks[creator] = &threads.Task{TID: creator, Name: "creator", Stat: -1, Place: -1, Slot: -1}
	born(1)
	born(2)
	e.births.note(&perfevent.Record{Type: perfevent.Comm, PID: uint32(e.PID), TID: 2, Name: []byte("own")})
	e.inheritNames()
	e.sendNames()
	e.inheritNames()
	e.sendNames()
	names, sent := sentNames(e)
	expect.True(t, names[1] == "creator" && names[2] == "own" && sent == 2, "%v, %d messages", names, sent)
}

// sentNames returns the names that were sent, and the number of messages.
func sentNames(e *Engine) (names map[uint64]string, sent int) {
	names = map[uint64]string{}
	for r := wire.NewReader(bytes.NewReader(e.Stream.Out.Bytes())); ; sent++ {
		m, err := r.Next()
		if err != nil {
			break
		}
		if th, ok := m.(*wire.Thread); ok {
			names[th.TID] = th.Name
		}
	}
	return names, sent
}

// A new thread gets its creator's name, even if the creator is new. A thread that has named itself keeps that
// name, even if the name is read before the birth. Of several new names, only the last one is sent.
func TestBirthsNamedInAnyOrder(t *testing.T) {
	e, born := bearing(t)
	creator, pid := uint32(unix.Gettid()), uint32(e.PID)
	e.Tasks[creator] = &threads.Task{TID: creator, Name: "creator", Stat: -1, Place: -1, Slot: -1}
	renamed := func(tid uint32, name string) {
		e.births.note(&perfevent.Record{Type: perfevent.Comm, PID: pid, TID: tid, Name: []byte(name)})
	}
	grandchild := func(tid, of uint32) {
		e.births.note(&perfevent.Record{Type: perfevent.Fork, PID: pid, TID: tid, Parent: of})
	}
	born(1)
	grandchild(2, 1)
	renamed(3, "first")
	renamed(3, "own") // its birth is in another ring
	renamed(5, "named child")
	born(5)
	grandchild(6, 5)
	for range 3 {
		e.inheritNames()
		e.sendNames()
		if e.births.pending(3) == nil {
			born(3)
		}
	}
	names, sent := sentNames(e)
	for tid, want := range map[uint64]string{1: "creator", 2: "creator", 3: "own", 5: "named child",
		6: "named child"} {
		expect.Equal(t, names[tid], want, "thread %d", tid)
	}
	expect.Equal(t, sent, 5, "messages")
	e.addForked(0)
	expect.True(t, e.Tasks[5] == nil || e.Tasks[5].Name == "named child", "an added thread has no name")
}

// While a program creates many threads, their births do not wake the tool: it reads them once in a period. If
// the kernel refuses the change, they wake the tool as before.
func TestBirthsSilent(t *testing.T) {
	e, _ := bearing(t)
	e.Period, e.Alarm, e.Table.Tasks, e.cpus = slowPeriod, alarm.New(), map[uint32]*threads.Task{}, 1
	timer, ok := e.Alarm.(*alarm.TimerFile)
	must.True(t, ok, "no file for the alarm")
	defer timer.Close()
	b := &e.births
	b.alarm, b.watch = timer, must.Get(perfevent.OpenWatch(perfevent.CPUs(), unix.Gettid()))(t)
	defer b.watch.Close()
	fds := b.watch.FDs()
	timer.Conn.Control(func(fd uintptr) { fds = append(fds, int(fd)) })
	b.wait = must.Get(perfevent.NewWait(fds...))(t)
	defer b.wait.Close()
	now := time.Now()
	for i, tid := range []uint32{1 << 30, uint32(unix.Gettid())} {
		clear(e.Tasks)
		e.Tasks[tid] = &threads.Task{TID: tid}
		b.rate = threads.BirthRate{}
		e.silenceBirths(now)
		b.rate.Born = 1000
		e.silenceBirths(now.Add(5 * time.Second))
		expect.Equal(t, b.rate.Many, i == 1, "silent with thread %d", tid)
	}
	began := time.Now()
	e.awaitBirths(10 * time.Second) // without the rate, it would wait for a birth
	took := time.Since(began)
	expect.True(t, took >= time.Duration(e.Period) && took < 5*time.Second, "waited %v", took)
	e.Period = 1e6
	b.rate = threads.BirthRate{}
	e.silenceBirths(now)
	b.rate.Born = 1000
	e.silenceBirths(now.Add(5 * time.Second))
	expect.True(t, !b.rate.Many, "births are read late at a high rate")
}

// Records of names alone wake the tool once in a period.
func TestNamesWait(t *testing.T) {
	e, _ := bearing(t)
	e.Period, e.Alarm = slowPeriod, alarm.New()
	timer, ok := e.Alarm.(*alarm.TimerFile)
	must.True(t, ok, "no file for the alarm")
	defer timer.Close()
	e.births.alarm, e.births.watch = timer, &perfevent.Watch{}
	e.births.wait = must.Get(perfevent.NewWait())(t)
	defer e.births.wait.Close()
	began := time.Now()
	for range 5 {
		e.births.newNames = 2
		e.awaitBirths(time.Minute)
	}
	took := time.Since(began)
	expect.True(t, took >= 5*time.Duration(e.Period) && took < time.Minute, "5 waits in %v", took)
}
