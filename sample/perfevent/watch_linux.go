package perfevent

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Watch reports the threads of a process that start, get another name, or end, from the kernel's records. It
// sees the descendants of the threads that existed when it was opened. It also reports the start of new
// processes. Before Linux 5.13, it also reports their ends and what they create.
type Watch struct {
	cpus   []int
	events []*Event // of each thread on each CPU
	rings  []*Ring  // of each CPU
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
	w := &Watch{cpus: cpus}
	if err := w.open(tids); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Watch) open(tids []int) error {
	for _, cpu := range w.cpus {
		if err := w.addRing(cpu); err != nil {
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

func (w *Watch) addRing(cpu int) error {
	owner, err := openDummy(os.Getpid(), cpu)
	if err != nil {
		return err
	}
	w.owners = append(w.owners, owner)
	r, err := MapRing(owner, watchRing, leastWatchRing)
	if err == nil {
		w.rings = append(w.rings, r)
	}
	return err
}

// Add watches the descendants of one more thread. Descendants of watched threads need no call.
func (w *Watch) Add(tid int) error {
	for i, cpu := range w.cpus {
		e, err := openDummy(tid, cpu)
		if err != nil {
			return err
		}
		w.events = append(w.events, e)
		if err = errors.Join(w.owners[i].Share(e), e.Enable()); err != nil {
			return err
		}
	}
	return nil
}

// openDummy opens an event that counts nothing and records the start, names, and end of threads. A record
// makes the descriptor readable at once. New threads inherit the event, and before Linux 5.13 new processes
// too.
func openDummy(tid, cpu int) (*Event, error) {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_DUMMY, Wakeup: 1,
		Bits: unix.PerfBitDisabled | unix.PerfBitInherit | inheritThread | unix.PerfBitTask |
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
// each CPU.
func (w *Watch) FDs() (fds []int) {
	for _, e := range w.owners {
		fds = append(fds, e.fd)
	}
	return fds
}

// Read passes each Fork, Comm, Exit, and Lost record to take. Records of different CPUs are not ordered by
// time.
func (w *Watch) Read(take func(*Record)) {
	var r Record
	for _, ring := range w.rings {
		ring.Read(func(b []byte) {
			if (Layout{}).Parse(b, &r) {
				take(&r)
			}
		})
	}
}

// Waiting reports whether there are records that have not been read.
func (w *Watch) Waiting() bool {
	for _, ring := range w.rings {
		if ring.Waiting() > 0 {
			return true
		}
	}
	return false
}

// Close ends the watch.
func (w *Watch) Close() {
	for _, r := range w.rings {
		r.Close()
	}
	for _, e := range append(w.events, w.owners...) {
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
