package outside

import (
	"math"
	"slices"
	"time"

	"github.com/seedwalk/seedwalk/report/wire"
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
	pid       uint32
	watch     *perfevent.Watch // nil: threads are found by listing
	wait      *perfevent.Wait  // for the watch and the alarm
	alarm     *alarm.TimerFile // ends long waits
	rings     *cpuring.Newborns
	sinceBoot int64             // added to a record's time to get Unix time, nanoseconds
	forked    []forked          // threads that are not added yet
	names     map[uint32]string // new names of threads, which are not sent yet
	early     map[uint32]string // names that were sent before the births of their threads were read
	newBirths int               // births since the last awaitBirths
	newNames  int               // names since then
	rate      threads.BirthRate
	ended     map[uint32]uint64 // time of the last record of a thread's end, by the clock of the records
}

// forked is the birth of a thread that may have ended.
type forked struct {
	perfevent.Record
	copies  *cpuring.Birth // nil: none
	known   bool           // copies is set
	named   bool           // it had the chance to inherit its creator's name
	name    string         // "": unknown
	weighed uint64         // processor time that the samples of its copies represent
}

// pending returns the latest stored birth of the thread tid, or nil.
func (b *births) pending(tid uint32) *forked {
	for i := len(b.forked) - 1; i >= 0; i-- {
		if f := &b.forked[i]; f.TID == tid {
			return f
		}
	}
	return nil
}

// mostWatching bounds the descriptors of a watch, which needs one for each thread and CPU.
const mostWatching = 4096

// watchBirths starts to watch for the descendants of the known threads.
func (e *Engine) watchBirths() {
	timer, ok := e.Alarm.(*alarm.TimerFile)
	if e.births.watch != nil || e.stretches.On || e.unwatched || e.cpuClock != sampler.ClockPerf ||
		e.Config.NoCPU || !ok {
		return
	}
	w, err := perfevent.OpenWatch(perfevent.CPUs(), e.watchable()...)
	if err != nil {
		return
	}
	fds := w.FDs()
	if e.kernelTime.Wake && e.kernelTime.Rings != nil {
		fds = append(fds, e.kernelTime.Rings.Rings()...)
	}
	timer.Conn.Control(func(fd uintptr) { fds = append(fds, int(fd)) })
	wait, err := perfevent.NewWait(fds...)
	if err != nil {
		w.Close()
		return
	}
	e.births = births{pid: uint32(e.PID), watch: w, wait: wait, alarm: timer,
		names: map[uint32]string{}, early: map[uint32]string{},
		sinceBoot: time.Now().UnixNano() - int64(perfevent.Now())}
	e.births.rings, _ = cpuring.NewNewborns(e.PID, uint64(e.Period))
	e.Relist() // threads may have come before the watch
}

// endWatch ends the watch, which has events of all threads.
func (e *Engine) endWatch(now time.Time) {
	e.readNewborns(now.UnixNano())
	e.births.Close()
	e.births = births{}
	e.Relist() // for births that were not handled yet
}

// watchable returns the living threads that the tool knows, as many as it may watch.
func (e *Engine) watchable() (tids []int) {
	for _, f := range e.births.forked {
		tids = append(tids, int(f.TID))
	}
	for tid := range e.Tasks {
		tids = append(tids, int(tid))
	}
	return tids[:min(len(tids), threads.MayOpen(8, mostWatching)/e.cpus)]
}

// silenceBirths keeps births from waking the tool while the program creates many threads.
func (e *Engine) silenceBirths(now time.Time) {
	b := &e.births
	if b.watch != nil && e.readsBirthsLate() && b.rate.Changed(now) {
		tids := e.watchable()
		all := len(tids) == len(b.forked)+len(e.Tasks)
		if !all || b.watch.SetSilent(b.rate.Many, b.note, tids...) != b.rate.Many {
			b.rate.Refused(now)
		}
	}
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
	e.inheritNames()
	e.addForked(now)
	e.sendNames()
	if b.rings != nil {
		b.rings.Renew()
	}
}

// inheritNames names new threads as their creators: a thread may end before its own name can be read. A name
// that a thread has given itself stays, even if another CPU's ring had it before the birth.
func (e *Engine) inheritNames() {
	b := &e.births
	for i := range b.forked {
		f := &b.forked[i]
		if f.named {
			continue
		}
		f.named = true
		if f.name = b.early[f.TID]; f.name != "" || b.names[f.TID] != "" {
			continue
		}
		if f.name = e.creatorName(f.Parent); f.name != "" {
			e.Stream.Out.Thread(&wire.Thread{TID: uint64(f.TID), Name: f.name})
		}
	}
	clear(b.early)
}

// creatorName returns the name of a thread that has created another one. The thread may be new too.
func (e *Engine) creatorName(tid uint32) string {
	if t := e.Tasks[tid]; t != nil {
		return t.Name
	}
	if f := e.births.pending(tid); f != nil && e.births.names[tid] == "" {
		return f.name
	}
	return e.births.names[tid]
}

// sendNames sends the names that threads have given themselves.
func (e *Engine) sendNames() {
	b := &e.births
	for tid, name := range b.names {
		if t := e.Tasks[tid]; t != nil {
			t.Name = name
		} else if f := b.pending(tid); f != nil {
			f.name = name
		} else {
			b.early[tid] = name
		}
		e.Stream.Out.Thread(&wire.Thread{TID: uint64(tid), Name: name})
	}
	clear(b.names)
}

// addForked adds the living threads whose births are stored. It leaves very young threads that have copies
// for a later call, because they may end soon and opening a thread takes about 25 system calls.
func (e *Engine) addForked(now int64) {
	b := &e.births
	b.forked = slices.DeleteFunc(b.forked, func(f forked) bool { return f.TID == e.file.Helper() })
	for i := range b.forked { // in their order: a thread may have created the next one
		if f := &b.forked[i]; b.rings != nil && e.startup == nil && !f.known {
			f.copies, f.known = b.rings.Born(&f.Record), true
		}
	}
	wait := int64(0)
	if e.readsBirthsLate() {
		wait = e.Period / 2
	}
	b.forked = slices.DeleteFunc(b.forked, func(f forked) bool {
		switch {
		case e.Tasks[f.TID] != nil: // List has found it, perhaps before its birth was read
			if f.known {
				e.Tasks[f.TID].Birth = f.copies
			}
		case b.ended[f.TID] >= f.Time: // its files are gone
		case int64(perfevent.Now()-f.Time) < wait && f.copies.Covers(math.MaxUint64):
			return false
		default:
			e.Add(f.TID, now)
		}
		return true
	})
	clear(b.ended)
}

// readsBirthsLate reports whether births may wait for half a period: meanwhile the copies sample the new
// threads.
func (e *Engine) readsBirthsLate() bool { return e.Period >= slowPeriod && !e.Config.Async }

// note stores a record of a thread's birth or end. An end may come before the birth, because each CPU has a
// ring.
func (b *births) note(r *perfevent.Record) {
	if r.PID != b.pid {
		return
	}
	switch r.Type {
	case perfevent.Fork:
		b.forked = append(b.forked, forked{Record: *r})
		b.newBirths++
		b.rate.Born++
	case perfevent.Comm:
		b.names[r.TID] = string(r.Name)
		b.newNames++
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
		e.addForked(now) // those whose copies have been closed
	}
}

// sleepWatching is sleep while threads are reported as they are created.
func (e *Engine) sleepWatching(d time.Duration) {
	for end := time.Now().Add(d); d > 0 && !e.Stopped.Load(); d = time.Until(end) {
		if e.Config.Events != 0 || e.Config.Client {
			d = min(d, events.EventStep)
		}
		e.awaitBirths(d)
		e.readKernel()
		now := time.Now().UnixNano()
		e.newborn(now)
		e.readNewborns(now)
		if (e.Config.Events != 0 || e.Config.Client) && e.file.Taken() > 0 {
			e.readRing()
		}
	}
}

// awaitBirths waits for a birth, at most for d. If births may be read late, it reads those of a period
// together. Names alone may be read late, too: a program may change them at any rate.
func (e *Engine) awaitBirths(d time.Duration) {
	b, late := &e.births, e.readsBirthsLate()
	end, pause := time.Now().Add(d), time.Duration(0)
	if late && (b.rate.Many || b.newBirths > 1 || b.newNames > b.newBirths+1 || len(b.forked) > 0) {
		pause = time.Duration(e.Period) // the next birth need not wake the tool
	}
	b.newBirths, b.newNames = 0, 0
	if pause == 0 {
		e.awaitRecords(d)
		switch {
		case late && b.newBirths+b.newNames > 0: // 0: the watch has reported new processes only
			pause = time.Duration(e.Period)
		case b.newBirths == 0 && b.newNames > 0:
			pause = time.Millisecond
		}
	}
	if left := time.Until(end); pause > 0 && left > 0 {
		b.wait.Quiet()
		e.Pause(min(left, pause))
	}
}

// awaitRecords waits for records of the watch, at most for d, and reads them.
func (e *Engine) awaitRecords(d time.Duration) {
	b := &e.births
	if d <= maxThreadSleep {
		b.wait.Short(d)
	} else if e.Alarm.Set(d); !e.Stopped.Load() { // Stop sets it again after the flag
		b.wait.Long(b.watch.Waiting)
	}
	b.alarm.Take()
	b.watch.Read(b.note)
}

// maxThreadSleep is the longest sleep that blocks the engine's thread in the kernel. During a longer one,
// Go's monitor would repeatedly check whether the thread still runs.
const maxThreadSleep = 12 * time.Millisecond
