package outside

import (
	"syscall"
	"time"
	"unsafe"

	"github.com/seedwalk/seedwalk/sample/alarm"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/events"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
)

// births reports new threads and samples the first period of their processor time. The engine opens its own
// event for a new thread too late for that period.
type births struct {
	watch     *perfevent.Watch // nil: threads are found by listing
	wait      *perfevent.Wait  // for the watch and the alarm
	alarm     *alarm.TimerFile // ends long waits
	rings     *cpuring.Newborns
	sinceBoot int64 // added to a record's time to get Unix time, nanoseconds
	forked    []perfevent.Record
	ended     map[uint32]uint64 // time of the last record of a thread's end, by the clock of the records
}

// mostWatching bounds the descriptors of a watch, which needs one for each thread and CPU.
const mostWatching = 4096

// watchBirths starts to watch for the descendants of the known threads.
func (e *Engine) watchBirths() {
	timer, ok := e.Alarm.(*alarm.TimerFile)
	if e.births.watch != nil || e.cpuClock != sampler.ClockPerf || e.Config.NoCPU || !ok {
		return
	}
	cpus := perfevent.CPUs()
	most := threads.MayOpen(8, mostWatching) / len(cpus)
	var tids []int
	for tid := range e.Tasks {
		if len(tids) < most {
			tids = append(tids, int(tid))
		}
	}
	w, err := perfevent.OpenWatch(cpus, tids...)
	if err != nil {
		return
	}
	fds := w.FDs()
	if e.kernelTime.wake && e.kernelTime.rings != nil {
		fds = append(fds, e.kernelTime.rings.Rings()...)
	}
	timer.Conn.Control(func(fd uintptr) { fds = append(fds, int(fd)) })
	wait, err := perfevent.NewWait(fds...)
	if err != nil {
		w.Close()
		return
	}
	e.births = births{watch: w, wait: wait, alarm: timer,
		sinceBoot: time.Now().UnixNano() - int64(perfevent.Now())}
	e.births.rings, _ = cpuring.NewNewborns(e.PID, uint64(e.Period))
	e.Relist() // threads may have come before the watch
}

// Close ends the watch.
func (b *births) Close() {
	if b.rings != nil {
		b.rings.Close()
	}
	if b.watch != nil {
		b.wait.Close()
		b.watch.Close()
	}
}

// newborn adds the threads that have been created since the last call and that live.
func (e *Engine) newborn(now int64) {
	b := &e.births
	if b.watch == nil {
		return
	}
	b.watch.Read(b.note)
	e.addForked(now)
	if b.rings != nil {
		b.rings.Renew()
	}
}

// addForked adds the threads whose births are stored.
func (e *Engine) addForked(now int64) {
	b := &e.births
	for i := range b.forked {
		r := &b.forked[i]
		if int(r.PID) != e.PID || r.TID == e.file.Helper() {
			continue
		}
		if e.Tasks[r.TID] == nil && b.ended[r.TID] < r.Time { // the files of one that ended are gone
			e.Add(r.TID, now)
		}
		if b.rings == nil || e.startup != nil {
			continue
		}
		birth := b.rings.Born(r)
		if t := e.Tasks[r.TID]; t != nil {
			t.Birth = birth
		}
	}
	b.forked = b.forked[:0]
	clear(b.ended)
}

// note stores a record of a thread's birth or end. An end may come before the birth, because each CPU has a
// ring.
func (b *births) note(r *perfevent.Record) {
	switch r.Type {
	case perfevent.Fork:
		b.forked = append(b.forked, *r)
	case perfevent.Exit:
		if b.ended == nil {
			b.ended = map[uint32]uint64{}
		}
		b.ended[r.TID] = max(r.Time, b.ended[r.TID])
	}
}

// readNewborns takes the samples of new threads.
func (e *Engine) readNewborns(now int64) {
	if e.births.rings != nil {
		e.births.rings.Read(func() { e.newborn(now) }, func(r *perfevent.Record) {
			e.copied(r, e.births.sinceBoot, e.Period)
		})
	}
}

// sleepWatching is sleep while threads are reported as they are created.
func (e *Engine) sleepWatching(d time.Duration) {
	for end := time.Now().Add(d); d > 0 && !e.Stopped.Load(); d = time.Until(end) {
		if e.Config.Events != 0 || e.Config.Client {
			d = min(d, events.EventStep)
		}
		if d <= maxThreadSleep {
			e.births.wait.Short(d)
		} else if e.Alarm.Set(d); !e.Stopped.Load() { // Stop sets it again after the flag
			e.births.wait.Long(e.births.watch.Waiting)
		}
		e.births.alarm.Take()
		e.readKernel()
		if left := time.Until(end); e.Period >= slowPeriod && !e.Config.Async && left > 0 {
			// The copies cover a new thread's first period, so its birth can wait that long.
			e.births.wait.Quiet()
			e.Pause(min(left, time.Duration(e.Period)))
		}
		now := time.Now().UnixNano()
		e.newborn(now)
		e.readNewborns(now)
		if (e.Config.Events != 0 || e.Config.Client) && e.file.Taken() > 0 {
			e.readRing()
		}
	}
}

// maxThreadSleep is the longest sleep that blocks the engine's thread in the kernel. During a longer one,
// Go's monitor would repeatedly check whether the thread still runs.
const maxThreadSleep = 12 * time.Millisecond

// sleepThread sleeps without Go's scheduler. This saves about ten system calls per sleep, and a monitor
// that wakes up every 20 us. Other goroutines run on another P, and a garbage collection interrupts the
// sleep with its signal.
func sleepThread(d time.Duration) {
	for end := time.Now().Add(d); d > 0; d = time.Until(end) {
		t := syscall.NsecToTimespec(int64(d))
		_, _, e := syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
		if e != 0 && e != syscall.EINTR {
			time.Sleep(d)
			return
		}
	}
}
