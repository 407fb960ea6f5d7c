package cpuring

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/perfevent"
)

// Config selects how a process is sampled.
type Config struct {
	PID    int
	Kernel bool   // sample only threads that are added: by Add their kernel time, by AddBoth all time
	Period uint64 // nanoseconds of CPU time between two samples of a thread
	Stack  int    // bytes to copy of a stack known to be shallow
	Short  bool   // threads are removed soon, and added again: so their clocks have random first periods
	Wake   bool   // each sample makes one of Rings readable
}

// StackCopy is how many bytes the kernel copies of a stack that is known to be shallow. Of other stacks it
// copies as much as it can.
const StackCopy = 16 << 10

// clock is the event of one thread on one CPU.
type clock struct {
	event *perfevent.Event
	lost  uint64 // hits, by the event's count when it was read last
	period
}

// thread has a clock for each CPU.
type thread struct {
	clocks []clock
	ended  bool   // the clocks are closed; some of their hits may not have been read
	since  uint64 // when its first clocks were enabled, by the records' clock
	depth  depth
	both   bool   // user time is sampled though Config.Kernel is set
	whole  uint64 // Config.Period when it was added
	before Totals // of the clocks that were closed
}

// open returns the clocks that are not closed.
func (t *thread) open() []clock {
	if t.ended {
		return nil
	}
	return t.clocks
}

// Sampler samples a process. Read, Ended, Remove, and Used must be called by one goroutine only.
type Sampler struct {
	cfg Config
	rings

	mu      sync.Mutex
	threads map[uint32]*thread
	ended   []uint32
	watch   *perfevent.Watch
	young   *Newborns       // nil: Config.Kernel is set, or the kernel provides no copies of clocks
	known   map[uint32]bool // threads whose descendants are watched
	depths  depths          // of removed threads, if Config.Short is set
	end     int             // an eventfd that ends the goroutine
	done    chan struct{}

	userOnly bool
	hitCost  uint64 // by HitCost, or 0
	copied   uint64 // hits since the last Taken
	counted  uint64 // of them, those that count
}

// New opens the rings and, unless Config.Kernel is set, samples all threads of the process. Its errors
// are those of package perfevent: the kernel may refuse all of it, or some of it for lack of locked
// memory.
func New(cfg Config) (*Sampler, error) {
	s := &Sampler{cfg: cfg, threads: map[uint32]*thread{}, known: map[uint32]bool{}, end: -1}
	err := s.rings.open(s.attr())
	if err == nil && !cfg.Kernel {
		if err = s.Add(uint32(cfg.PID)); err == nil {
			err = s.follow()
		}
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Sampler) attr() perfevent.Attr {
	return perfevent.Attr{Period: s.cfg.Period, Regs: true, Stack: s.cfg.Stack,
		ExcludeKernel: s.userOnly, ExcludeUser: s.cfg.Kernel, Wake: s.cfg.Wake}
}

// Add starts to sample a thread. Unless Config.Kernel is set, threads that descend from it are added when the
// kernel reports them.
func (s *Sampler) Add(tid uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(tid, false)
}

// SetPeriod changes Config.Period for threads that are added later.
func (s *Sampler) SetPeriod(period uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.Period = period
}

// AddBoth starts to sample a thread's user time and kernel time, even if Config.Kernel is set.
func (s *Sampler) AddBoth(tid uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(tid, true)
}

func (s *Sampler) add(tid uint32, both bool) error {
	if s.threads[tid] != nil {
		return nil
	}
	t := &thread{both: both, whole: s.cfg.Period}
	if s.cfg.Short {
		t.depth = s.depths.take(tid)
	}
	if err := s.open(tid, t, !s.cfg.Kernel || s.cfg.Short); err != nil {
		return err
	}
	s.threads[tid] = t
	if s.watch != nil && !s.known[tid] {
		s.known[tid] = true
		s.watch.Add(int(tid))
	}
	return nil
}

// open opens a thread's clocks, and enables them as close together as possible. first selects a random first
// period. A sampler of kernel time does not use it: such a period would end at the first hit in the kernel,
// which may be late.
func (s *Sampler) open(tid uint32, t *thread, first bool) error {
	a := s.attr()
	a.ExcludeUser = a.ExcludeUser && !t.both
	if !t.depth.small {
		a.Stack = perfevent.MaxStack
	}
	parts, grid := uint64(shortestPart), uint64(0)
	if s.cfg.Short {
		parts = stretchMinPart
	}
	t.clocks, t.ended = slices.Grow(t.clocks[:0], len(s.cpus)), false
	for i, cpu := range s.cpus {
		a.Period = nextPeriod(t.whole, rand.Uint64N)
		if first {
			a.Period = firstPeriod(t.whole, parts, s.hitCost, rand.Uint64N)
			grid = a.Period
		}
		e, err := perfevent.OpenClock(int(tid), cpu, a)
		if err == nil {
			t.clocks = append(t.clocks,
				clock{event: e, period: period{whole: t.whole, now: a.Period, first: first,
					keep: s.cfg.Short, grid: grid}})
			a.ExcludeKernel = e.ExcludesKernel()
			s.userOnly = a.ExcludeKernel
			err = s.owners[i].Share(e)
		}
		if err != nil {
			s.close(t)
			return err
		}
	}
	if t.since == 0 {
		t.since = perfevent.Now()
	}
	for i := range t.clocks {
		t.clocks[i].event.Enable()
	}
	return nil
}

// close closes a thread's clocks, if they are open, and adds their counts to before.
func (s *Sampler) close(t *thread) {
	for i := range t.open() {
		c := &t.clocks[i]
		counted, _ := c.event.Count()
		n := Totals{Counted: counted, Located: c.hits * c.whole}
		if s.userOnly {
			n.InKernel = c.inKernel(counted)
		}
		t.before.add(n)
		s.countLost(c)
		c.event.Close()
	}
	t.ended = true
}

// Read passes each hit that counts to take. The record is valid until take returns.
func (s *Sampler) Read(take func(*perfevent.Record)) {
	s.read(s.counts, take)
	if s.young == nil {
		return
	}
	s.young.Read(s.changes, func(r *perfevent.Record) {
		if s.unclocked(r) {
			take(r)
		}
	})
}

// unclocked reports whether a thread had no clock of its own at the time of a hit.
func (s *Sampler) unclocked(r *perfevent.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.threads[r.TID]
	return t == nil || r.Time < t.since
}

// counts reports whether a hit counts, and gives its clock a new period if that is due.
func (s *Sampler) counts(cpu int, r *perfevent.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.threads[r.TID]
	if t == nil || cpu >= len(t.clocks) || r.Time < t.since {
		return false
	}
	c := &t.clocks[cpu]
	counts, renew := c.hit(r.Time)
	if s.copied++; counts {
		s.counted++
	}
	if renew && !t.ended {
		c.renew()
	}
	return counts
}

// Taken returns how many hits of clocks Read has seen since the last call, and how many of them count.
func (s *Sampler) Taken() (all, counted uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, counted = s.copied, s.counted
	s.copied, s.counted = 0, 0
	return all, counted
}

// renew gives a clock another period.
func (c *clock) renew() {
	counted, _ := c.event.Count()
	next := c.next(counted, rand.Uint64N)
	if c.event.SetPeriod(next) != nil {
		return
	}
	c.renewed(next, counted, perfevent.Now())
}

// Used records how many bytes of its stack a sample of a thread needed; cut means that the copy ended before
// the stack did. Later copies are adapted.
func (s *Sampler) Used(tid uint32, bytes uint64, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.threads[tid]
	if t == nil || t.ended || !t.depth.sampled(bytes, cut, s.cfg.Stack) {
		return
	}
	s.close(t)
	s.open(tid, t, s.cfg.Short)
}

// CountLost reads the counts of lost hits of the clocks that are open.
func (s *Sampler) CountLost() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.threads {
		for i := range t.open() {
			s.countLost(&t.clocks[i])
		}
	}
}

// Ended returns the threads that have ended since the last call. Their hits are in the rings by then. So call
// Read next, and then Remove.
func (s *Sampler) Ended() []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.ended
	s.ended = nil
	return out
}

// FDs returns the number of descriptors for one thread.
func (s *Sampler) FDs() int { return len(s.cpus) }

// Stop stops sampling a thread. The hits until now count if they are read before Remove.
func (s *Sampler) Stop(tid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.threads[tid]; t != nil {
		s.close(t)
	}
}

// Remove stops sampling a thread. It returns what is known of its CPU time, false if the thread was not
// sampled.
func (s *Sampler) Remove(tid uint32) (Totals, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.threads[tid]
	if t == nil {
		return Totals{}, false
	}
	delete(s.threads, tid)
	delete(s.known, tid)
	if s.young != nil {
		s.young.forget(tid)
	}
	s.close(t)
	if s.cfg.Short {
		s.depths.keep(tid, t.depth)
	}
	return t.before, true
}

// InKernel returns the nanoseconds of a sampled thread's CPU time that have no hits, because the kernel
// permits no hits in itself.
func (s *Sampler) InKernel(tid uint32) (nanos uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.threads[tid]
	if t == nil || !s.userOnly {
		return 0
	}
	for i := range t.open() {
		counted, _ := t.clocks[i].event.Count()
		nanos += t.clocks[i].inKernel(counted)
	}
	return nanos + t.before.InKernel
}

// Threads returns the threads that are sampled.
func (s *Sampler) Threads() (tids []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tid := range s.threads {
		tids = append(tids, tid)
	}
	return tids
}

// Close stops sampling.
func (s *Sampler) Close() {
	if s.end >= 0 {
		unix.Write(s.end, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		<-s.done
		unix.Close(s.end)
	}
	if s.young != nil {
		s.young.Close()
	}
	if s.watch != nil {
		s.watch.Close()
	}
	for _, t := range s.threads {
		s.close(t)
	}
	s.rings.close()
}

// follow opens the watch, and a goroutine that adds the threads that it reports.
func (s *Sampler) follow() error {
	watch, err := perfevent.OpenWatch(s.cpus, s.cfg.PID)
	if err != nil {
		return err
	}
	s.watch, s.known[uint32(s.cfg.PID)] = watch, true
	s.young, _ = NewNewborns(s.cfg.PID, s.cfg.Period)
	if s.end, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return err
	}
	fds := []unix.PollFd{{Fd: int32(s.end), Events: unix.POLLIN}}
	for _, fd := range watch.FDs() {
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	s.done = make(chan struct{})
	go s.serve(fds)
	return nil
}

// serve adds new threads until Close.
func (s *Sampler) serve(fds []unix.PollFd) {
	defer close(s.done)
	for {
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) || fds[0].Revents != 0 {
			return
		}
		s.changes()
	}
}

// changes handles the records of the watch.
func (s *Sampler) changes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.Read(s.changed)
	if s.young != nil {
		s.young.Renew()
	}
}

// changed handles one record of the watch.
func (s *Sampler) changed(r *perfevent.Record) {
	if int(r.PID) != s.cfg.PID {
		return
	}
	switch r.Type {
	case perfevent.Fork:
		s.known[r.TID] = true
		s.add(r.TID, false)
		if s.young != nil {
			s.young.Born(r)
		}
	case perfevent.Exit:
		s.ended = append(s.ended, r.TID)
	}
}
