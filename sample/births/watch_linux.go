package births

import (
	"math"
	"slices"
	"time"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/alarm"
	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/threads"
)

// Watch watches a process for new threads between Open and End.
type Watch struct {
	base    *sampler.Base
	table   *threads.Table
	helper  func() uint32 // the number of a thread that is not sampled
	copying func() bool   // reports whether new threads get copies
	cpus    int           // of the machine
	state
}

// state is what a watch has between Open and End.
type state struct {
	watch     *perfevent.Watch // nil: threads are found by listing
	wait      *perfevent.Wait  // for the watch and the alarm
	alarm     *alarm.TimerFile // ends long waits
	rings     *cpuring.Newborns
	SinceBoot int64             // added to a record's time to get Unix time, nanoseconds
	forked    []forked          // threads that wait
	names     map[uint32]string // new names of threads, which are not sent yet
	early     map[uint32]string // names that were sent before the births of their threads were read
	newBirths int               // births since the last Await
	newNames  int               // names since then
	rate      rate
	ended     map[uint32]uint64 // time of the last record of a thread's end, by the clock of the records
}

// New returns a watch that is not open. It adds new threads to table, except helper. While copying returns
// false, something else samples new threads.
func New(base *sampler.Base, table *threads.Table, helper func() uint32, copying func() bool) Watch {
	return Watch{base: base, table: table, helper: helper, copying: copying, cpus: len(perfevent.CPUs())}
}

// IsOpen reports whether new threads are watched.
func (w *Watch) IsOpen() bool { return w.watch != nil }

// BirthOf returns the birth of a thread with copies, which may have ended, or nil.
func (w *Watch) BirthOf(tid uint32) *cpuring.Birth { return w.rings.BirthOf(tid) }

// forked is a stored birth. Its thread may have ended.
type forked struct {
	perfevent.Record
	copies  *cpuring.Birth // nil: none
	known   bool           // copies is set
	named   bool           // it had the chance to inherit its creator's name
	name    string         // "": unknown
	weighed uint64         // CPU time that the samples of its copies represent
}

// pending returns the latest stored birth of the thread tid, or nil.
func (w *Watch) pending(tid uint32) *forked {
	for i := len(w.forked) - 1; i >= 0; i-- {
		if f := &w.forked[i]; f.TID == tid {
			return f
		}
	}
	return nil
}

// mostWatching bounds the descriptors of a watch, which needs one for each thread and CPU.
const mostWatching = 4096

// Begin copies what is known of a thread's birth into its Task, when the table adds the thread.
func (w *Watch) Begin(t *threads.Task) {
	if f := w.pending(t.TID); f != nil {
		t.Birth, t.Weighed, t.Name = f.copies, f.weighed, f.name
	}
}

// Weigh records that a sample of a thread that waits represents some CPU time, in nanoseconds.
func (w *Watch) Weigh(tid uint32, cpu uint64) {
	if f := w.pending(tid); f != nil {
		f.weighed += cpu // for Begin
	}
}

// Open starts to watch for the descendants of the known threads, unless the kernel refuses. Await also ends
// when a file of others is readable.
func (w *Watch) Open(others ...int) {
	timer, ok := w.base.Alarm.(*alarm.TimerFile)
	if !ok {
		return
	}
	watch, err := perfevent.OpenWatch(perfevent.CPUs(), w.watchable()...)
	if err != nil {
		return
	}
	fds := append(watch.FDs(), others...)
	timer.Conn.Control(func(fd uintptr) { fds = append(fds, int(fd)) })
	wait, err := perfevent.NewWait(fds...)
	if err != nil {
		watch.Close()
		return
	}
	w.state = state{watch: watch, wait: wait, alarm: timer, names: map[uint32]string{},
		early: map[uint32]string{}, SinceBoot: time.Now().UnixNano() - int64(perfevent.Now())}
	w.rings, _ = cpuring.NewNewborns(w.base.PID, uint64(w.base.Period))
	w.table.Relist() // threads may have come before the watch
}

// watchable returns the living threads that the tool knows, as many as it may watch.
func (w *Watch) watchable() (tids []int) {
	for _, f := range w.forked {
		tids = append(tids, int(f.TID))
	}
	for tid := range w.table.Tasks {
		tids = append(tids, int(tid))
	}
	return tids[:min(len(tids), threads.MayOpen(8, mostWatching)/w.cpus)]
}

// Silence keeps births from waking the tool while the program creates many threads.
func (w *Watch) Silence(now time.Time) {
	if w.watch != nil && w.Late() && w.rate.changed(now) {
		tids := w.watchable()
		all := len(tids) == len(w.forked)+len(w.table.Tasks)
		if !all || w.watch.SetSilent(w.rate.many, w.Note, tids...) != w.rate.many {
			w.rate.takeBack(now)
		}
	}
}

// End ends the watch, which has events of all threads. Open may begin it again.
func (w *Watch) End() {
	w.Close()
	w.state = state{}
	w.table.Relist() // for births that were not handled yet
}

// Close closes the watch and the rings of the copies.
func (w *Watch) Close() {
	if w.rings != nil {
		w.rings.Close()
	}
	if w.watch != nil {
		w.wait.Close()
		w.watch.Close()
		w.watch = nil
	}
}

// Update adds the threads that have been created since the last call and that live.
func (w *Watch) Update(now int64) {
	if w.watch == nil {
		return
	}
	w.watch.Read(w.Note)
	w.inheritNames()
	w.addForked(now)
	w.sendNames()
	if w.rings != nil {
		w.rings.Renew()
	}
}

// inheritNames names new threads as their creators: a thread may end before its own name can be read. A name
// that a thread has given itself stays, even if another CPU's ring had it before the birth.
func (w *Watch) inheritNames() {
	for i := range w.forked {
		f := &w.forked[i]
		if f.named {
			continue
		}
		f.named = true
		if f.name = w.early[f.TID]; f.name != "" || w.names[f.TID] != "" {
			continue
		}
		if f.name = w.creatorName(f.Parent); f.name != "" {
			w.base.Stream.Out.Thread(&wire.Thread{TID: uint64(f.TID), Name: f.name})
		}
	}
	clear(w.early)
}

// creatorName returns the name of a thread that has created another one. The thread may be new too.
func (w *Watch) creatorName(tid uint32) string {
	if t := w.table.Tasks[tid]; t != nil {
		return t.Name
	}
	if f := w.pending(tid); f != nil && w.names[tid] == "" {
		return f.name
	}
	return w.names[tid]
}

// sendNames sends the names that threads have given themselves.
func (w *Watch) sendNames() {
	for tid, name := range w.names {
		if t := w.table.Tasks[tid]; t != nil {
			t.Name = name
		} else if f := w.pending(tid); f != nil {
			f.name = name
		} else {
			w.early[tid] = name
		}
		w.base.Stream.Out.Thread(&wire.Thread{TID: uint64(tid), Name: name})
	}
	clear(w.names)
}

// addForked adds the living threads whose births are stored. It leaves very young threads that have copies
// for a later call, because they may end soon and opening a thread takes about 25 system calls.
func (w *Watch) addForked(now int64) {
	w.forked = slices.DeleteFunc(w.forked, func(f forked) bool { return f.TID == w.helper() })
	for i := range w.forked { // in their order: a thread may have created the next one
		if f := &w.forked[i]; w.rings != nil && w.copying() && !f.known {
			f.copies, f.known = w.rings.Born(&f.Record), true
		}
	}
	wait := int64(0)
	if w.Late() {
		wait = w.base.Period / 2
	}
	w.forked = slices.DeleteFunc(w.forked, func(f forked) bool {
		switch {
		case w.table.Tasks[f.TID] != nil: // List has found it, perhaps before its birth was read
			if f.known {
				w.table.Tasks[f.TID].Birth = f.copies
			}
		case w.ended[f.TID] >= f.Time: // its files are gone
		case int64(perfevent.Now()-f.Time) < wait && f.copies.Covers(math.MaxUint64):
			return false
		default:
			w.table.Add(f.TID, now)
		}
		return true
	})
	clear(w.ended)
}

// Late reports whether births may wait for half a period: meanwhile the copies sample the new threads.
func (w *Watch) Late() bool { return w.base.Period >= sampler.SlowPeriod && !w.base.Config.Async }

// Note stores a record of a thread's birth or end. An end may come before the birth, because each CPU has a
// ring.
func (w *Watch) Note(r *perfevent.Record) {
	if r.PID != uint32(w.base.PID) {
		return
	}
	switch r.Type {
	case perfevent.Fork:
		w.forked = append(w.forked, forked{Record: *r})
		w.newBirths++
		w.rate.born++
	case perfevent.Comm:
		w.names[r.TID] = string(r.Name)
		w.newNames++
	case perfevent.Exit:
		if w.ended == nil {
			w.ended = map[uint32]uint64{}
		}
		w.ended[r.TID] = max(r.Time, w.ended[r.TID])
	}
}

// Read adds new threads, and passes the samples of their first periods to take. A record is valid until take
// returns.
func (w *Watch) Read(now int64, take func(*perfevent.Record)) {
	if w.rings != nil {
		w.rings.Read(func() { w.Update(now) }, take)
		w.addForked(now) // those whose copies have been closed
	}
}

// Await waits for a birth, at most for d. If births may be read late, it reads those of a period
// together. Names alone may be read late, too: a program may change them at any rate.
func (w *Watch) Await(d time.Duration) {
	late := w.Late()
	end, pause := time.Now().Add(d), time.Duration(0)
	if late && (w.rate.many || w.newBirths > 1 || w.newNames > w.newBirths+1 || len(w.forked) > 0) {
		pause = time.Duration(w.base.Period) // the next birth need not wake the tool
	}
	w.newBirths, w.newNames = 0, 0
	if pause == 0 {
		w.awaitRecords(d)
		switch {
		case late && w.newBirths+w.newNames > 0: // 0: the watch has reported new processes only
			pause = time.Duration(w.base.Period)
		case w.newBirths == 0 && w.newNames > 0:
			pause = time.Millisecond
		}
	}
	if left := time.Until(end); pause > 0 && left > 0 {
		w.wait.Quiet()
		w.base.Pause(min(left, pause))
	}
}

// awaitRecords waits for records of the watch, at most for d, and reads them.
func (w *Watch) awaitRecords(d time.Duration) {
	if d <= alarm.MaxThreadSleep {
		w.wait.Short(d)
	} else if w.base.Alarm.Set(d); !w.base.Stopped.Load() { // Stop sets it again after the flag
		w.wait.Long(w.watch.Waiting)
	}
	w.alarm.Take()
	w.watch.Read(w.Note)
}
