package threads

import (
	"errors"
	"time"

	"github.com/seedwalk/seedwalk/sample/cpuring"
	"github.com/seedwalk/seedwalk/sample/perfevent"
)

// Copies samples the CPU time that threads use in the kernel. A signal there would interrupt a
// waiting system call, so the kernel copies registers and stack into a ring. If a thread blocks the signals
// of its samples, or the program takes them, or the thread is sampled in stretches, Copies samples user time
// in the same way.
type Copies struct {
	Rings     *cpuring.Sampler // nil: not open
	Kernel    bool             // the kernel permits samples of itself
	SinceBoot int64            // added to a record's time to get Unix time, nanoseconds
	Room      int              // how many more threads may be added
	All       bool             // all threads are sampled by copies, because SIGURG is taken
	Short     bool             // the rings are those of stretches
	Wake      bool             // each sample is to be read at once, for its async callers
	Tried     time.Time        // last attempt to open the rings; it fails if others hold the lockable memory

	lost uint64 // copies of rings that were closed
}

// mostCopied bounds the descriptors of the copies, one for each thread and CPU.
const mostCopied = 4096

// Open opens the rings if the kernel permits samples of itself.
func (c *Copies) Open(pid int, period int64) {
	if c.OpenRings(pid, period); c.Rings == nil {
		c.Kernel = false
		return
	}
	if c.Kernel = c.Rings.Add(uint32(pid)) == nil; !c.Kernel {
		c.Close()
		c.Tried = time.Time{}
		return
	}
	c.Rings.Remove(uint32(pid)) // until the engine adds it, others sample it
}

// OpenRings opens the rings, unless that failed a moment ago.
func (c *Copies) OpenRings(pid int, period int64) {
	if c.Rings != nil || time.Since(c.Tried) < time.Second {
		return
	}
	c.Tried = time.Now()
	rings, err := cpuring.New(cpuring.Config{PID: pid, Period: uint64(period),
		Stack: cpuring.StackCopy, Kernel: true, Short: c.Short, Wake: c.Wake})
	if err != nil {
		return
	}
	c.Rings, c.SinceBoot = rings, time.Now().UnixNano()-int64(perfevent.Now())
	c.Room = MayOpen(4, mostCopied) / rings.FDs()
}

// Close closes the rings.
func (c *Copies) Close() {
	if c.Rings != nil {
		c.lost = c.Lost()
		c.Rings.Close()
		c.Rings = nil
	}
}

// Lost returns the number of copies for which there was no room.
func (c *Copies) Lost() uint64 {
	if c.Rings == nil {
		return c.lost
	}
	return c.lost + c.Rings.Lost()
}

// CountLost reads how many copies the events of the threads have lost.
func (c *Copies) CountLost() {
	if c.Rings != nil {
		c.Rings.CountLost()
	}
}

// Add starts to sample a thread: its user time and kernel time if both is set, else its kernel time. It
// returns false if the kernel refuses or the limit of files is reached.
func (c *Copies) Add(t *Task, both bool) bool {
	t.KernelHits, t.KernelEvery = false, 1
	if c.Rings == nil || c.Room == 0 || !c.Kernel && !both {
		return false
	}
	add := c.Rings.Add
	if both {
		add = c.Rings.AddBoth
	}
	err := add(t.TID)
	if errors.Is(err, perfevent.ErrLimit) {
		c.Room = 0
	}
	if t.KernelHits = err == nil; t.KernelHits {
		c.Room--
	}
	return t.KernelHits
}

// The event of a thread's kernel time interrupts the thread in user code too, and takes no sample there. In
// a virtual machine, that costs as much as a sample. So a thread that is seldom in the kernel gets longer
// periods, and each sample there represents more time.
const (
	seldomShare  = 8   // seldom: less than 1/seldomShare of its CPU time
	seldomWindow = 256 // periods of CPU time after which this is decided again
	seldomEvery  = 8   // how many periods a sample represents, at most
	seldomPeriod = 8e6 // how many nanoseconds, about, at most
)

// Adapt decides from time to time how often a thread's kernel time is sampled. Before a change, it calls
// read, which must take all samples from the rings: they were made with the old period.
func (c *Copies) Adapt(t *Task, period int64, read func()) {
	if !t.KernelHits || t.Copied || t.Weighed < t.decided+seldomWindow*uint64(period) {
		return
	}
	read()
	every := uint64(1)
	if t.KernelTime*seldomShare < t.Weighed-t.decided {
		every = uint64(max(1, min(seldomEvery, (seldomPeriod+period/2)/period)))
	}
	t.decided, t.KernelTime = t.Weighed, 0
	if !t.KernelHits || t.Copied || every == t.KernelEvery {
		return
	}
	c.Remove(t)
	c.Rings.SetPeriod(every * uint64(period))
	if c.Add(t, false) {
		t.KernelEvery = every
	}
	c.Rings.SetPeriod(uint64(period))
}

// Remove ends the sampling of a thread.
func (c *Copies) Remove(t *Task) {
	if c.Rings == nil || !t.KernelHits {
		return
	}
	t.KernelHits = false
	c.Rings.Remove(t.TID)
	c.Room++
}

// MayCopy reports whether there is room for the copies of a number of threads, and for as many later ones.
func (c *Copies) MayCopy(n int) bool {
	return c.Rings != nil && c.Rings.Deep() && MayOpen(4, mostCopied)/c.Rings.FDs() >= 2*n
}
