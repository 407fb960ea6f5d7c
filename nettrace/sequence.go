package nettrace

import "github.com/seedwalk/seedwalk/internal/buf"

// sequences knows the last number of every capture thread. Numbers begin at 1
// and wrap at 2^32. Threads' events come in runs, so the thread of the last one
// is kept at hand.
type sequences struct {
	last   map[uint64]*uint32
	forgot bool // the map was emptied: a thread's first number says nothing
	hand   *uint32
	thread uint64 // of hand
}

// find returns a thread's counter, nil if it was not seen.
func (s *sequences) find(thread uint64) *uint32 {
	if s.hand == nil || s.thread != thread {
		if s.hand = s.last[thread]; s.hand == nil {
			return nil
		}
		s.thread = thread
	}
	return s.hand
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
	s.hand = nil
}

func (s *sequences) remove(thread uint64) {
	delete(s.last, thread)
	s.hand = nil
}

// see takes an event's number: how many are missing before it, and whether the
// counter began anew because the id is of another thread now.
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

// reach takes a sequence point's statement that a thread's counter is at least
// n, and returns how many events are missing.
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
			r.reached(thread, thread, seq)
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

// reached notes what a thread lost; key is what counters are kept by.
func (r *Reader) reached(key, thread uint64, seq uint32) {
	if lost := r.threads.reach(key, seq); lost > 0 {
		r.counts.Lost += int64(lost)
		r.point.Lost = append(r.point.Lost, Lost{thread, lost})
	}
}

func (r *Reader) endPoint(b *buf.Reader) {
	r.counts.Points++
	if !b.OK() {
		r.abandon(BadPoint, r.base+int64(b.Pos()))
	}
}
