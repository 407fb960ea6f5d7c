package nettrace_test

import (
	"flag"
	"io"
	"math/bits"
	"runtime"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
)

var big = flag.Int("big", 32, "megabytes of the stream that is made and read")

// stream generates a trace of any length while it is read: the same events, stacks, and sequence point
// repeatedly, with new numbers.
type stream struct {
	w       *nettracefile.Writer
	seq     [8]uint32
	time    uint64
	left    int64
	at      int
	started bool
}

func newStream(size int64) *stream {
	s := &stream{w: nettracefile.New(nettracefile.Options{}), left: size}
	s.w.Metadata(nettracefile.Meta{ID: 1, Provider: "P", Event: 301},
		nettracefile.Meta{ID: 2, Provider: "P", Event: 302})
	return s
}

func (s *stream) Read(p []byte) (int, error) {
	for s.at == s.w.Len() {
		if s.started && s.left <= 0 {
			return 0, io.EOF
		}
		s.started = true
		s.more()
	}
	n := copy(p, s.w.Bytes()[s.at:])
	s.at += n
	s.left -= int64(n)
	return n, nil
}

// more appends the next piece. Read bytes are dropped, except for the remainder of their length by four, on
// which padding depends.
func (s *stream) more() {
	if rest := s.w.Len() % 4; s.at > 0 {
		s.w.Reset()
		s.w.Raw(make([]byte, rest)...)
		s.at = rest
	}
	stacks := make([][]uint64, 64)
	for i := range stacks {
		for j := range 20 {
			stacks[i] = append(stacks[i], bits.RotateLeft64(0x9e3779b97f4a7c15, i*j))
		}
	}
	first := uint32(s.time%1e6) + 1
	s.w.Stacks(first, stacks...)
	events := make([]nettracefile.Event, 1000)
	for i := range events {
		thread := i / 10 % 8
		s.seq[thread]++
		s.time += 1000
		e := nettracefile.Event{Meta: uint32(i%2 + 1), Seq: s.seq[thread], Thread: uint64(thread + 1),
			Time: s.time, Stack: first + uint32(i%64), Payload: payload[:11]}
		if i%2 == 1 {
			e.Payload = payload[:2]
		}
		events[i] = e
	}
	s.w.Events(events...)
	s.w.Point(s.time)
	if s.left < int64(s.w.Len()) {
		s.left = 0
		s.w.End()
	}
}

var payload [16]byte

// TestBig reads a stream of -big megabytes: no event is lost, and memory does not grow.
func TestBig(t *testing.T) {
	size := int64(*big) << 20
	in := newStream(size)
	r := nettrace.NewReader(in)
	var before, after runtime.MemStats
	most, events := 0, 0
	start := time.Now()
	runtime.ReadMemStats(&before)
	for {
		kind, err := r.Next()
		if err == io.EOF {
			break
		}
		must.Do(t, err)
		if kind == nettrace.EventKind {
			if events++; events%4096 == 0 {
				most = max(most, r.Held())
			}
		}
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	c := r.Counts()
	expect.True(t, c.Lost == 0 && c.LostStacks == 0 && len(r.Faults()) == 0 && c.Bytes >= size,
		"%+v, %v", c, r.Faults())
	expect.True(t, most <= 1<<20, "%d bytes held", most)
	t.Logf("%d MB, %d events in %v (with making them); %d KB held at most",
		c.Bytes>>20, events, took, most>>10)
}

// TestNoAllocation: an event in a loaded block costs no allocation.
func TestNoAllocation(t *testing.T) {
	raw := must.Get(io.ReadAll(newStream(8 << 20)))(t)
	r := nettrace.NewReader(&bytesReader{b: raw})
	for range 200_000 { // the buffers have grown
		r.Next()
	}
	if n := testing.AllocsPerRun(5, func() {
		for range 900 {
			r.Next()
		}
	}); n > 40 { // the names of blocks
		t.Errorf("%v allocations for 900 events", n)
	}
}

// replayed is a stream that was made before it is read, to measure the reader alone.
func BenchmarkRead(b *testing.B) {
	raw := must.Get(io.ReadAll(newStream(64 << 20)))(b)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		r := nettrace.NewReader(&bytesReader{b: raw})
		events := 0
		for {
			if _, err := r.Next(); err != nil {
				break
			}
			events++
		}
		b.ReportMetric(float64(events), "events/op")
	}
}

type bytesReader struct{ b []byte }

func (r *bytesReader) Read(p []byte) (int, error) {
	n := copy(p, r.b)
	r.b = r.b[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
