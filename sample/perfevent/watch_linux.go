package perfevent

import (
	"errors"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// Watch reports the threads of a process that start, get another name, or end, from the kernel's records. It
// sees the descendants of the threads with which it was opened. It also reports the start of new processes.
// Before Linux 5.13, it also reports their ends and what they create.
type Watch struct {
	cpus   []int
	events []*Event // of each thread on each CPU
	waking watchRings
	silent watchRings // opened by the first SetSilent(true)
	inUse  *watchRings
}

// watchRings are one ring for each CPU.
type watchRings struct {
	wakeup uint32 // bytes of records after which a ring becomes readable; 0: half of the ring
	rings  []*Ring
	owners []*Event // of the rings: the tool's own, never enabled, so that they outlive the threads
}

// Sizes of a CPU's ring, bytes. A thread that starts, names itself, and ends writes three records of 32
// bytes. A user without privileges may lock 516 KB for each CPU; if others use that, the ring is smaller.
const (
	watchRing      = 16 << 10
	leastWatchRing = 4 << 10
)

// OpenWatch watches the descendants of the threads tids on the CPUs. Threads that have ended are skipped. The
// error wraps ErrGone if all have ended.
func OpenWatch(cpus []int, tids ...int) (*Watch, error) {
	w := &Watch{cpus: cpus, waking: watchRings{wakeup: 1}}
	w.inUse = &w.waking
	if err := w.open(tids); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// SetSilent selects whether records make the descriptors readable. To do that, the kernel interrupts the
// processor of the thread at each record, which takes up to 15 us in a virtual machine. The threads tids
// replace those of OpenWatch. If the kernel refuses, nothing changes. Then SetSilent reads the records as
// Read does, and watches the threads that were created meanwhile. It returns whether the watch is silent
// now. A birth or an end during the call may be reported twice.
func (w *Watch) SetSilent(silent bool, take func(*Record), tids ...int) bool {
	oldEvents, oldRings := w.events, w.inUse
	w.events, w.inUse = nil, &w.waking
	if silent {
		w.inUse = &w.silent
	}
	if w.open(tids) != nil {
		oldEvents, w.events, w.inUse = w.events, oldEvents, oldRings
	}
	w.Read(func(r *Record) {
		if r.Type == Fork && r.TID != r.PID { // a thread; it may have ended
			_ = w.Add(int(r.TID))
		}
		take(r)
	})
	for _, e := range oldEvents {
		e.Close()
	}
	return w.inUse == &w.silent
}

// open adds the threads tids, after it has opened the rings in use.
func (w *Watch) open(tids []int) error {
	for _, cpu := range w.cpus[len(w.inUse.rings):] {
		if err := w.inUse.add(cpu); err != nil {
			return err
		}
	}
	for _, tid := range tids {
		if err := w.Add(tid); err != nil && !errors.Is(err, ErrGone) {
			return err
		}
	}
	if len(w.events) == 0 {
		return &Error{"perf_event_open", ErrGone, unix.ESRCH}
	}
	return nil
}

func (w *watchRings) add(cpu int) error {
	owner, err := openDummy(os.Getpid(), cpu, w.wakeup)
	if err != nil {
		return err
	}
	r, err := MapRing(owner, watchRing, leastWatchRing)
	if err != nil {
		owner.Close()
		return err
	}
	w.owners, w.rings = append(w.owners, owner), append(w.rings, r)
	return nil
}

// Add watches the descendants of one more thread. Descendants of watched threads need no call.
func (w *Watch) Add(tid int) error {
	for i, cpu := range w.cpus {
		e, err := openDummy(tid, cpu, 0)
		if err != nil {
			return err
		}
		w.events = append(w.events, e)
		if err = errors.Join(w.inUse.owners[i].Share(e), e.Enable()); err != nil {
			return err
		}
	}
	return nil
}

// openDummy opens an event that counts nothing and records the start, names, and end of threads. New threads
// inherit the event, and before Linux 5.13 new processes too. wakeup is for an event that gets a ring.
func openDummy(tid, cpu int, wakeup uint32) (*Event, error) {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_DUMMY,
		Wakeup: wakeup, Bits: unix.PerfBitDisabled | unix.PerfBitInherit | inheritThread | unix.PerfBitTask |
			unix.PerfBitComm | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv | unix.PerfBitWatermark}
	fd, err := openAttr(&attr, tid, cpu)
	if errors.Is(err, unix.EINVAL) {
		attr.Bits &^= inheritThread
		fd, err = openAttr(&attr, tid, cpu)
	}
	if err != nil {
		return nil, err
	}
	return &Event{fd: fd}, nil
}

// FDs returns the descriptors that poll(2) reports as readable when there are records, one of
// each CPU, unless SetSilent has silenced them.
func (w *Watch) FDs() (fds []int) {
	for _, e := range w.waking.owners {
		fds = append(fds, e.fd)
	}
	return fds
}

// Read passes each Fork, Comm, Exit, and Lost record to take. Records of different CPUs are not ordered by
// time.
func (w *Watch) Read(take func(*Record)) {
	var r Record
	for _, ring := range w.rings() {
		ring.Read(func(b []byte) {
			if (Layout{}).Parse(b, &r) {
				take(&r)
			}
		})
	}
}

// Waiting reports whether there are records that have not been read.
func (w *Watch) Waiting() bool {
	return slices.ContainsFunc(w.rings(), func(r *Ring) bool { return r.Waiting() > 0 })
}

// rings returns all rings that may have records.
func (w *Watch) rings() []*Ring { return slices.Concat(w.waking.rings, w.silent.rings) }

// Close ends the watch.
func (w *Watch) Close() {
	for _, r := range w.rings() {
		r.Close()
	}
	for _, e := range slices.Concat(w.events, w.waking.owners, w.silent.owners) {
		e.Close()
	}
}

// CPUs returns the numbers of the CPUs that may run threads, from /sys/devices/system/cpu/online. If that
// cannot be read, it assumes the number of CPUs that the tool may use.
func CPUs() []int {
	b, err := os.ReadFile("/sys/devices/system/cpu/online")
	if cpus, ok := parseCPUs(string(b)); err == nil && ok {
		return cpus
	}
	cpus := make([]int, runtime.NumCPU())
	for i := range cpus {
		cpus[i] = i
	}
	return cpus
}
