package cpuring

import (
	"os"
	"slices"

	"github.com/seedwalk/seedwalk/sample/perfevent"
)

// rings are one ring for each CPU, which the clocks of all threads on that CPU share.
type rings struct {
	cpus   []int
	owners []*perfevent.Event // of the rings
	rings  []*perfevent.Ring
	record perfevent.Record
	lost   uint64 // hits, by the records of the rings
	missed uint64 // the same, by the counts of clocks
}

// Sizes of the rings, bytes. A user without privileges may lock 516 KB for each CPU, others get
// more. A ring of 512 KB has room for seven stacks of 64 KB.
const (
	allRings  = 16 << 20 // of all CPUs together
	ringSize  = 4 << 20  // at most for a CPU
	leastRing = 32 << 10
)

// open maps the rings for clocks whose samples contain what a says. After an error, the caller must still
// call close.
func (r *rings) open(a perfevent.Attr) error {
	a.ExcludeKernel, a.ExcludeUser, a.Inherit = true, false, false
	r.cpus = perfevent.CPUs()
	for _, cpu := range r.cpus {
		if err := r.add(cpu, a); err != nil {
			return err
		}
	}
	return nil
}

// add maps the ring of a CPU. The ring belongs to an event of the tool that never runs, so it outlives the
// threads.
func (r *rings) add(cpu int, a perfevent.Attr) error {
	owner, err := perfevent.OpenClock(os.Getpid(), cpu, a)
	if err != nil {
		return err
	}
	r.owners = append(r.owners, owner)
	ring, err := perfevent.MapRing(owner, max(512<<10, min(ringSize, allRings/len(r.cpus))), leastRing)
	if err == nil {
		r.rings = append(r.rings, ring)
	}
	return err
}

// read passes each hit that counts to take. The record is valid until take returns. Records of lost hits are
// also passed to counts.
func (r *rings) read(counts func(cpu int, r *perfevent.Record) bool, take func(*perfevent.Record)) {
	for cpu, ring := range r.rings {
		layout := r.owners[cpu].Layout()
		ring.Read(func(b []byte) {
			if layout.Parse(b, &r.record) && counts(cpu, &r.record) && r.record.Type == perfevent.Sample {
				take(&r.record)
			}
			r.lost += r.record.Lost
		})
	}
}

// Rings returns the descriptors of the rings, for poll(2).
func (r *rings) Rings() (fds []int) {
	for _, e := range r.owners {
		fds = append(fds, e.FD())
	}
	return fds
}

// Deep reports whether each ring has room for two samples whose copies of the stack are as large as possible.
func (r *rings) Deep() bool {
	small := func(ring *perfevent.Ring) bool { return ring.Size() < 2*perfevent.MaxStack }
	return !slices.ContainsFunc(r.rings, small)
}

// Filling reports whether a quarter of a ring is waiting to be read.
func (r *rings) Filling() bool {
	return slices.ContainsFunc(r.rings, func(ring *perfevent.Ring) bool {
		return ring.Waiting() >= uint64(ring.Size()/4)
	})
}

// Lost returns the number of hits for which a ring had no room: the larger one of two numbers. The records of
// a ring lack the hits that were lost after the last record. The counts of the clocks are read only when a
// clock is closed, and by CountLost.
func (r *rings) Lost() uint64 { return max(r.lost, r.missed) }

// countLost reads the count of a clock's lost hits.
func (r *rings) countLost(c *clock) {
	n := c.event.Lost()
	r.missed, c.lost = r.missed+n-min(c.lost, n), n
}

func (r *rings) close() {
	for _, ring := range r.rings {
		ring.Close()
	}
	for _, e := range r.owners {
		e.Close()
	}
}
