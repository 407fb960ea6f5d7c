package nettrace

import "github.com/seedwalk/seedwalk/internal/buf"

// sequences knows the last number of every capture thread. Numbers begin at 1
// and wrap at 2^32.
type sequences struct {
	last   map[uint64]uint32
	forgot bool // the map was emptied: a thread's first number says nothing
}

// see takes an event's number: how many are missing before it, and whether the
// counter began anew because the id is of another thread now.
func (s *sequences) see(thread uint64, n uint32) (lost uint32, restart bool) {
	last, known := s.last[thread]
	s.set(thread, n)
	if !known && s.forgot {
		return 0, false
	}
	if !known || int32(n-last) > 0 {
		return n - last - 1, false
	}
	if n == 0 { // a writer that does not count
		return 0, false
	}
	return n - 1, true
}

func (s *sequences) set(thread uint64, n uint32) {
	if len(s.last) >= maxThreads {
		clear(s.last)
		s.forgot = true
	}
	s.last[thread] = n
}

// reach takes a sequence point's statement that a thread's counter is at least
// n, and returns how many events are missing.
func (s *sequences) reach(thread uint64, n uint32) uint32 {
	last, known := s.last[thread]
	if !known && s.forgot || int32(n-last) <= 0 {
		return 0
	}
	s.set(thread, n)
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
