package nettrace

import "github.com/seedwalk/seedwalk/internal/buf"

// sequences holds the last number of every capture thread. Numbers start at 1 and wrap at
// 2^32. The counters of recent threads are cached.
type sequences struct {
	last   map[uint64]*uint32
	forgot bool // the map was emptied: a thread's first number then has no meaning
	recent [32]recentThread
}

// recentThread is a thread with its counter in sequences.last, nil = none.
type recentThread struct {
	thread uint64
	at     *uint32
}

// place returns the thread's place in the cache. Thread numbers of Windows are multiples of four.
func (s *sequences) place(thread uint64) *recentThread {
	return &s.recent[(thread^thread>>2)%uint64(len(s.recent))]
}

// find returns a thread's counter, nil if the thread is unknown.
func (s *sequences) find(thread uint64) *uint32 {
	r := s.place(thread)
	if r.at == nil || r.thread != thread {
		*r = recentThread{thread, s.last[thread]}
	}
	return r.at
}

func (s *sequences) add(thread uint64, n uint32) {
	if len(s.last) >= maxThreads {
		s.forget()
		s.forgot = true
	}
	s.last[thread] = &n
}

func (s *sequences) forget() {
	clear(s.last)
	s.recent = [32]recentThread{}
}

func (s *sequences) remove(thread uint64) {
	delete(s.last, thread)
	s.place(thread).at = nil
}

// see processes an event's number. It returns the number of missing events before it, and
// whether the counter restarted because another thread reuses the id.
func (s *sequences) see(thread uint64, n uint32) (lost uint32, restart bool) {
	at := s.find(thread)
	if at == nil {
		s.add(thread, n)
		if s.forgot || n == 0 {
			return 0, false
		}
		return n - 1, false
	}
	last := *at
	*at = n
	switch {
	case int32(n-last) > 0:
		return n - last - 1, false
	case n == 0: // a writer that does not count
		return 0, false
	}
	return n - 1, true
}

// reach processes a sequence point, at which a thread's counter is at least n. It returns the
// number of missing events.
func (s *sequences) reach(thread uint64, n uint32) uint32 {
	at := s.find(thread)
	switch {
	case at == nil && s.forgot:
		return 0
	case at == nil:
		s.add(thread, n)
		return n
	}
	last := *at
	if int32(n-last) <= 0 {
		return 0
	}
	*at = n
	return n - last
}

// pointV4 reads: timestamp, count, and per thread its id and number.
func (r *Reader) pointV4() {
	b := buf.At(r.data, 0)
	r.beginPoint(b.U64(), false)
	n := b.U32()
	for i := uint32(0); i < n && b.OK(); i++ {
		thread, seq := b.U64(), b.U32()
		if b.OK() {
			r.reached(thread, threadIDs{thread: thread}, seq)
		}
	}
	r.endPoint(&b)
	r.stacks.clear()
}

func (r *Reader) beginPoint(timestamp uint64, removed bool) {
	r.events.active = false
	r.point = Point{Timestamp: timestamp, Removed: removed, Lost: r.point.Lost[:0], Offset: r.base}
	r.ready = true
}

// reached records the lost events of a thread. key identifies the counter.
func (r *Reader) reached(key uint64, of threadIDs, seq uint32) {
	if lost := r.threads.reach(key, seq); lost > 0 {
		r.counts.Lost += int64(lost)
		r.point.Lost = append(r.point.Lost, Lost{of.process, of.thread, lost})
	}
}

func (r *Reader) endPoint(b *buf.Reader) {
	r.counts.Points++
	if !b.OK() {
		r.abandon(BadPoint, r.base+int64(b.Pos()))
	}
}
