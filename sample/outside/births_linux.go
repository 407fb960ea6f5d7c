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

// births reports threads as they are created, and samples the first period of their processor
// time. The event that the engine opens for a new thread comes too late for that.
type births struct {
	watch     *perfevent.Watch // nil = there is none: threads are found by listing
	wait      *perfevent.Wait  // for the watch and the alarm
	alarm     *alarm.TimerFile // ends long waits
	rings     *cpuring.Newborns
	sinceBoot int64 // from the time of its records to Unix time, nanoseconds
}

// mostWatching bounds the descriptors of a watch: it needs one of each thread and CPU.
const mostWatching = 4096

// watchBirths begins to watch what descends from the threads that are known.
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
	timer.Conn.Control(func(fd uintptr) { fds = append(fds, int(fd)) })
	wait, err := perfevent.NewWait(fds...)
	if err != nil {
		w.Close()
		return
	}
	e.births = births{watch: w, wait: wait, alarm: timer, sinceBoot: time.Now().UnixNano() - int64(perfevent.Now())}
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

// newborn takes note of the threads that have been created.
func (e *Engine) newborn(now int64) {
	if e.births.watch == nil {
		return
	}
	helper := e.file.Helper()
	e.births.watch.Read(func(r *perfevent.Record) {
		if r.Type != perfevent.Fork || int(r.PID) != e.PID || r.TID == helper {
			return
		}
		if e.Tasks[r.TID] == nil {
			e.Add(r.TID, now)
		}
		if e.births.rings != nil && e.startup == nil {
			e.Tasks[r.TID].Birth = e.births.rings.Born(r)
		}
	})
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
		if e.Config.Events != 0 || e.Config.Copies {
			d = min(d, events.EventStep)
		}
		if d <= maxThreadSleep {
			e.births.wait.Short(d)
		} else if e.Alarm.Set(d); !e.Stopped.Load() { // Stop sets it again after the flag
			e.births.wait.Long()
		}
		e.births.alarm.Take()
		now := time.Now().UnixNano()
		e.newborn(now)
		e.readNewborns(now)
		if (e.Config.Events != 0 || e.Config.Copies) && e.file.Taken() > 0 {
			e.file.Read(e.record)
		}
	}
}

// maxThreadSleep is the longest sleep that is the engine's own: a longer one would have Go's
// monitor ask it again and again whether it still runs.
const maxThreadSleep = 12 * time.Millisecond

// sleepThread sleeps without telling Go's scheduler. The scheduler would give the processor's
// tokens away, put its monitor to sleep, and on waking up look for them and wake that:
// some ten calls of the kernel, and a monitor that then looks around every 20 us. What
// else is to run has another token, and a collection interrupts the sleep by its signal.
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
