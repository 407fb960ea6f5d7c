package cpuring

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"sync"

	"github.com/seedwalk/seedwalk/sample/perfevent"
)

// Newborns samples the first period of CPU time of each thread, from its first instant. A thread
// inherits copies of its creator's clocks. A copy begins with a whole period, so Renew gives the creator's
// clocks a new random one: the first hit of a copy falls anywhere in the first period and represents a whole
// one. Later hits do not count.
//
// The first thread that a thread creates inherits no copies. Threads that a creator creates between two calls
// of Renew have copies with the same period.
type Newborns struct {
	rings
	pid  uint32
	attr perfevent.Attr // without its period, which is a whole one
	live uint64         // nanoseconds that copies run

	mu       sync.Mutex
	creators map[uint32]*creator
	births   map[uint32]*Birth
	closed   map[uint32]*Birth // those whose copies were closed, for some time
}

// creator has one inheritable clock for each CPU.
type creator struct {
	events        []*perfevent.Event
	opened, ended uint64 // by the clock of the records, nanoseconds; ended is 0 until its copies are closed
	last          uint64 // birth
	created       bool   // it has created a thread since its clocks got this period
	tids          []uint32
}

// Birth records which hits of a thread Newborns uses; nil means none.
type Birth struct {
	by  *creator
	hit uint64 // one bit per CPU, modulo 64, whose copy has been hit
}

const (
	// maxCreators bounds the threads that have inheritable clocks.
	maxCreators = 32
	// copiesLive is how long copies run at least, nanoseconds, and copiesHits how many periods. Each hit
	// costs the thread a copy of its stack, and new clocks for a creator cost the tool.
	copiesLive = 100_000_000
	copiesHits = 10
	// leastBorn is the shortest period of copies, nanoseconds. A new thread does not reach its own code
	// sooner.
	leastBorn = 20_000
	// newStack is how much is copied of the stack of a new thread, bytes.
	newStack = 8 << 10
	// creatorRests is how long after the last new thread a creator's clocks are closed, nanoseconds.
	creatorRests = 10_000_000_000
)

// NewNewborns opens the rings. Period is the nanoseconds of CPU time that a hit represents.
// Errors are those of package perfevent.
func NewNewborns(pid int, period uint64) (*Newborns, error) {
	n := &Newborns{pid: uint32(pid), live: max(copiesLive, copiesHits*period),
		attr:     perfevent.Attr{Period: period, Regs: true, Stack: newStack, Inherit: true},
		creators: map[uint32]*creator{}, births: map[uint32]*Birth{}, closed: map[uint32]*Birth{}}
	if err := n.rings.open(n.attr); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Born handles a Fork record. It returns the new thread's Birth, nil if the thread has no copies.
func (n *Newborns) Born(r *perfevent.Record) *Birth {
	n.mu.Lock()
	defer n.mu.Unlock()
	by := n.creators[r.Parent]
	delete(n.births, r.TID) // of an ended thread with this number
	delete(n.closed, r.TID)
	if parent := n.births[r.Parent]; parent != nil { // it also inherits the parent's copies
		by = parent.by
	}
	if by == nil {
		n.open(r.Parent)
		return nil
	}
	by.last, by.created = r.Time, true
	if r.Time < by.opened {
		return nil
	}
	b := &Birth{by: by}
	by.tids = append(by.tids, r.TID)
	n.births[r.TID] = b
	return b
}

// BirthOf returns the Birth of a thread, nil if it has none. The thread may have ended, and its copies may
// have been closed a short time ago.
func (n *Newborns) BirthOf(tid uint32) *Birth {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return cmp.Or(n.births[tid], n.closed[tid])
}

// open opens the clocks of a creator, if there is room for one.
func (n *Newborns) open(tid uint32) {
	if len(n.creators) >= maxCreators {
		return
	}
	c := &creator{}
	// An event that is not inherited. Without it, the kernel would treat creator and created thread as equal
	// and swap their clocks at a context switch between them.
	e, err := perfevent.OpenClock(int(tid), -1, perfevent.Attr{ExcludeKernel: true})
	if err != nil {
		return
	}
	c.events = append(c.events, e)
	for i, cpu := range n.cpus {
		a := n.attr
		a.Period = bornPeriod(n.attr.Period)
		e, err := perfevent.OpenClock(int(tid), cpu, a)
		if err == nil {
			c.events = append(c.events, e)
			err = n.owners[i].Share(e)
		}
		if err == nil {
			err = e.Enable()
		}
		if err != nil {
			c.close()
			return
		}
	}
	c.opened = perfevent.Now()
	c.last = c.opened
	n.creators[tid] = c
}

// bornPeriod draws the period of the next copies, uniformly up to the whole one.
func bornPeriod(whole uint64) uint64 { return max(rand.Uint64N(whole)+1, leastBorn) }

// Renew gives the next copies of each creator another period. It is called once after many calls of Born,
// because each change of a clock interrupts a processor.
func (n *Newborns) Renew() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.creators {
		if !c.created {
			continue
		}
		c.created = false
		for _, e := range c.events[1:] { // not the one that is not inherited
			e.SetPeriod(bornPeriod(n.attr.Period))
		}
	}
}

// close closes a creator's clocks and their copies.
func (c *creator) close() {
	for _, e := range c.events {
		e.Close()
	}
	c.ended = perfevent.Now()
}

// Read passes the first hit of each copy to take. The record is valid until take returns. If the thread of a
// hit is not known yet, Read calls births, which calls Born for each available Fork record. Read must be
// called by one goroutine only.
func (n *Newborns) Read(births func(), take func(*perfevent.Record)) {
	n.read(func(cpu int, r *perfevent.Record) bool {
		if r.Type != perfevent.Sample {
			births()
			n.lose(cpu)
			return false
		}
		b, known := n.birth(r)
		if !known {
			births()
			b, _ = n.birth(r)
		}
		return b.first(cpu)
	}, take)
	n.turn(perfevent.Now())
}

// birth returns the Birth of a hit's thread. known is false if its Fork record was not read yet.
func (n *Newborns) birth(r *perfevent.Record) (b *Birth, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.PID != n.pid || n.creators[r.TID] != nil {
		return nil, true
	}
	b = n.births[r.TID]
	return b, b != nil
}

// lose handles lost hits. A first hit of any thread may be among them, so the next one may not be the first.
func (n *Newborns) lose(cpu int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, b := range n.births {
		b.first(cpu)
	}
}

// first reports whether no copy of the thread on a CPU has been hit before.
func (b *Birth) first(cpu int) bool {
	if b == nil || b.hit>>(cpu%64)&1 != 0 {
		return false
	}
	b.hit |= 1 << (cpu % 64)
	return true
}

// forget drops later hits of a thread.
func (n *Newborns) forget(tid uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.births[tid]; b != nil {
		b.hit = ^uint64(0)
	}
}

// Covers reports whether Newborns samples the thread's first period at a time.
func (b *Birth) Covers(time uint64) bool {
	return b != nil && (b.by.ended == 0 || time < b.by.ended)
}

// turn closes old copies.
func (n *Newborns) turn(now uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.closed, func(_ uint32, b *Birth) bool { return now-min(b.by.ended, now) >= n.live })
	for tid, c := range n.creators {
		creates := now-min(c.last, now) < creatorRests
		if creates && (len(c.tids) == 0 || now-min(c.opened, now) < n.live) {
			continue
		}
		n.end(tid, c)
		if creates {
			last := c.last
			if n.open(tid); n.creators[tid] != nil {
				n.creators[tid].last = last
			}
		}
	}
}

// end removes a creator and the threads that it has created.
func (n *Newborns) end(tid uint32, c *creator) {
	c.close()
	delete(n.creators, tid)
	for _, tid := range c.tids {
		if b := n.births[tid]; b != nil && b.by == c {
			delete(n.births, tid)
			n.closed[tid] = b
		}
	}
}

// Close ends the sampling.
func (n *Newborns) Close() {
	for tid, c := range n.creators {
		n.end(tid, c)
	}
	n.rings.close()
}
