package births

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/alarm"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/sample/threads"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// watching returns a watch of this process with a period of an hour, so that no thread gets older than half
// of it. born stores the birth of a thread that this thread creates now, and returns its time.
func watching(t *testing.T) (w *Watch, born func(tid uint32) int64) {
	t.Helper()
	pid := os.Getpid()
	base, table := &sampler.Base{PID: pid, Period: int64(time.Hour)}, threads.NewTable(pid)
	base.Stream = sampler.NewOutput(&target.Process{}, io.Discard)
	unix.Close(table.Kernel.Dir)
	table.Kernel.Dir = must.Get(unix.Open(t.TempDir(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0))(t)
	t.Cleanup(func() { table.Kernel.Close(table.Tasks) })
	watch := New(base, &table, func() uint32 { return 99 }, func() bool { return true })
	w = &watch
	table.Name, table.Came, table.Gone = func(*threads.Task) {}, w.Begin, func(*threads.Task) {}
	rings, err := cpuring.NewNewborns(pid, uint64(base.Period))
	if errors.Is(err, perfevent.ErrRefused) {
		t.Skipf("SKIPPED-CHECK: %v", err)
	}
	must.Do(t, err)
	t.Cleanup(rings.Close)
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	w.rings, w.names, w.early = rings, map[uint32]string{}, map[uint32]string{}
	parent := uint32(unix.Gettid())
	return w, func(tid uint32) int64 {
		at := perfevent.Now()
		w.Note(&perfevent.Record{Type: perfevent.Fork, PID: uint32(pid), TID: tid, Parent: parent, Time: at})
		return int64(at)
	}
}

// At a low rate, a thread with copies is opened only once it has lived for half a period. If it ends sooner,
// it costs no system call. The helper thread is never opened.
func TestBirthsWait(t *testing.T) {
	w, born := watching(t)
	w.addForked(born(1))
	expect.True(t, w.table.Tasks[1] != nil, "the first thread of a creator has no copies, and waits")
	calls := w.table.Kernel.Calls
	born(99)
	at := born(2)
	w.Note(&perfevent.Record{Type: perfevent.Fork, PID: 1, TID: 20, Time: uint64(at)}) // a process
	w.addForked(at)
	w.Note(&perfevent.Record{Type: perfevent.Exit, PID: uint32(w.base.PID), TID: 2, Time: uint64(at + 1)})
	w.addForked(at + w.base.Period)
	expect.True(t, len(w.table.Tasks) == 1 && w.table.Kernel.Calls == calls,
		"a thread that ended soon was opened")
	at = born(3)
	w.addForked(at + w.base.Period) // the wall clock may be set meanwhile
	must.True(t, w.table.Tasks[3] == nil && len(w.forked) == 1, "opened too soon")
	w.forked[0].Time -= uint64(w.base.Period / 2)
	w.addForked(at - w.base.Period)
	k := w.table.Tasks[3]
	must.True(t, k != nil && k.Birth != nil && len(w.forked) == 0, "not opened: %+v", k)
	w.addForked(born(5))
	w.rings.Close() // the copies end
	w.addForked(at)
	expect.True(t, w.table.Tasks[5] != nil, "a thread without copies waits")
}

// If the listing finds a thread before its birth is read, the thread still gets its copies, even if it has
// ended.
func TestBirthsListed(t *testing.T) {
	w, born := watching(t)
	w.addForked(born(1))
	at := born(2)
	w.addForked(at)
	w.table.Add(2, at)
	expect.True(t, w.table.Tasks[2].Birth != nil, "the birth of a waiting thread is not used")
	w.table.Add(3, at)
	born(3)
	w.Note(&perfevent.Record{Type: perfevent.Exit, PID: uint32(w.base.PID), TID: 3, Time: perfevent.Now()})
	w.addForked(at)
	expect.True(t, w.table.Tasks[3].Birth != nil, "the birth of an ended thread is not used")
	expect.Equal(t, len(w.forked), 0, "threads that wait")
}

// A new thread has the name of its creator until it sets its own, even if it ends before it is opened.
func TestBirthsNamed(t *testing.T) {
	w, born := watching(t)
	creator := uint32(unix.Gettid())
	w.table.Tasks[creator] = &threads.Task{TID: creator, Name: "creator", Stat: -1, Place: -1, Slot: -1}
	born(1)
	born(2)
	w.Note(&perfevent.Record{Type: perfevent.Comm, PID: uint32(w.base.PID), TID: 2, Name: []byte("own")})
	w.inheritNames()
	w.sendNames()
	w.inheritNames()
	w.sendNames()
	names, sent := sentNames(w)
	expect.True(t, names[1] == "creator" && names[2] == "own" && sent == 2, "%v, %d messages", names, sent)
}

// sentNames returns the names that were sent, and the number of messages.
func sentNames(w *Watch) (names map[uint64]string, sent int) {
	names = map[uint64]string{}
	for r := wire.NewReader(bytes.NewReader(w.base.Stream.Out.Bytes())); ; sent++ {
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
	w, born := watching(t)
	creator, pid := uint32(unix.Gettid()), uint32(w.base.PID)
	w.table.Tasks[creator] = &threads.Task{TID: creator, Name: "creator", Stat: -1, Place: -1, Slot: -1}
	renamed := func(tid uint32, name string) {
		w.Note(&perfevent.Record{Type: perfevent.Comm, PID: pid, TID: tid, Name: []byte(name)})
	}
	grandchild := func(tid, of uint32) {
		w.Note(&perfevent.Record{Type: perfevent.Fork, PID: pid, TID: tid, Parent: of})
	}
	born(1)
	grandchild(2, 1)
	renamed(3, "first")
	renamed(3, "own") // its birth is in another ring
	renamed(5, "named child")
	born(5)
	grandchild(6, 5)
	for range 3 {
		w.inheritNames()
		w.sendNames()
		if w.pending(3) == nil {
			born(3)
		}
	}
	names, sent := sentNames(w)
	for tid, want := range map[uint64]string{1: "creator", 2: "creator", 3: "own", 5: "named child",
		6: "named child"} {
		expect.Equal(t, names[tid], want, "thread %d", tid)
	}
	expect.Equal(t, sent, 5, "messages")
	w.addForked(0)
	child := w.table.Tasks[5]
	expect.True(t, child == nil || child.Name == "named child", "an added thread has no name")
}

// While a program creates many threads, their births do not wake the tool: it reads them once in a period. If
// the kernel refuses the change, they wake the tool as before.
func TestBirthsSilent(t *testing.T) {
	w, _ := watching(t)
	w.base.Period, w.base.Alarm, w.cpus = sampler.SlowPeriod, alarm.New(), 1
	timer, ok := w.base.Alarm.(*alarm.TimerFile)
	must.True(t, ok, "no file for the alarm")
	defer timer.Close()
	w.alarm, w.watch = timer, must.Get(perfevent.OpenWatch(perfevent.CPUs(), unix.Gettid()))(t)
	defer w.watch.Close()
	fds := w.watch.FDs()
	timer.Conn.Control(func(fd uintptr) { fds = append(fds, int(fd)) })
	w.wait = must.Get(perfevent.NewWait(fds...))(t)
	defer w.wait.Close()
	now := time.Now()
	for i, tid := range []uint32{1 << 30, uint32(unix.Gettid())} {
		clear(w.table.Tasks)
		w.table.Tasks[tid] = &threads.Task{TID: tid}
		w.rate = rate{}
		w.Silence(now)
		w.rate.born = 1000
		w.Silence(now.Add(5 * time.Second))
		expect.Equal(t, w.rate.many, i == 1, "silent with thread %d", tid)
	}
	began := time.Now()
	w.Await(10 * time.Second) // without the rate, it would wait for a birth
	took := time.Since(began)
	expect.True(t, took >= time.Duration(w.base.Period) && took < 5*time.Second, "waited %v", took)
	w.base.Period = 1e6
	w.rate = rate{}
	w.Silence(now)
	w.rate.born = 1000
	w.Silence(now.Add(5 * time.Second))
	expect.True(t, !w.rate.many, "births are read late at a high rate")
}

// Records of names alone wake the tool once in a period.
func TestNamesWait(t *testing.T) {
	w, _ := watching(t)
	w.base.Period, w.base.Alarm = sampler.SlowPeriod, alarm.New()
	timer, ok := w.base.Alarm.(*alarm.TimerFile)
	must.True(t, ok, "no file for the alarm")
	defer timer.Close()
	w.alarm, w.watch = timer, &perfevent.Watch{}
	w.wait = must.Get(perfevent.NewWait())(t)
	defer w.wait.Close()
	began := time.Now()
	for range 5 {
		w.newNames = 2
		w.Await(time.Minute)
	}
	took := time.Since(began)
	expect.True(t, took >= 5*time.Duration(w.base.Period) && took < time.Minute, "5 waits in %v", took)
}

// A thread that has ended before its birth is read is not opened. Its end may come first, because each CPU
// has a ring.
func TestBornAndEnded(t *testing.T) {
	fork := func(at uint64) perfevent.Record {
		return perfevent.Record{Type: perfevent.Fork, TID: 7, Time: at}
	}
	exit := func(tid uint32, at uint64) perfevent.Record {
		return perfevent.Record{Type: perfevent.Exit, TID: tid, Time: at}
	}
	for name, c := range map[string]struct {
		records []perfevent.Record
		added   bool
	}{
		"lives":                     {[]perfevent.Record{fork(5)}, true},
		"ended":                     {[]perfevent.Record{fork(5), exit(7, 6)}, false},
		"ended on another CPU":      {[]perfevent.Record{exit(7, 6), fork(5)}, false},
		"has an ended one's number": {[]perfevent.Record{exit(7, 4), fork(5)}, true},
		"another has ended":         {[]perfevent.Record{fork(5), exit(8, 6)}, true},
	} {
		w, _ := watching(t)
		calls := w.table.Kernel.Calls
		for i := range c.records {
			c.records[i].PID = uint32(w.base.PID)
			w.Note(&c.records[i])
		}
		w.addForked(1)
		expect.Equal(t, w.table.Tasks[7] != nil, c.added, "%s: added", name)
		expect.Equal(t, w.table.Kernel.Calls > calls, c.added, "%s: system calls", name)
	}
}

// A recording of async callers opens a thread at once, since its copies have none. While something else
// samples new threads, they get no copies.
func TestBirthsOtherwiseSampled(t *testing.T) {
	w, born := watching(t)
	w.addForked(born(1))
	w.base.Config.Async = true
	w.addForked(born(2))
	k := w.table.Tasks[2]
	must.True(t, k != nil, "a thread with async callers waits")
	expect.True(t, k.Birth != nil, "it has no copies")
	w.base.Config.Async, w.copying = false, func() bool { return false }
	w.addForked(born(3))
	k = w.table.Tasks[3]
	must.True(t, k != nil, "a thread without copies waits")
	expect.True(t, k.Birth == nil && w.BirthOf(3) == nil, "it has copies")
}
