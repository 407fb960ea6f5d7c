//go:build linux || (windows && amd64)

package engine

import (
	"bytes"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// source is an engine that sends samples, a few at a time.
type source struct {
	to   io.Writer
	n    int
	sent chan error // the first error, or nil after n samples
}

func (s *source) Run() string {
	w := wire.NewWriter(nil)
	for range s.n {
		w.Sample(&wire.Sample{TID: 1, Frames: []wire.Frame{{IP: 5, Kind: unwind.KindManaged}}})
		_, err := s.to.Write(w.Bytes())
		if w.Reset(); err != nil {
			s.sent <- err
			return ""
		}
	}
	s.sent <- nil
	return ""
}

func (s *source) Stop() {}

// The engine samples on while the namer is late, as when it reads the symbols of large images. The client
// receives all samples later.
func TestLateNamer(t *testing.T) {
	const samples = 10000
	ours, client := net.Pipe() // nothing is read from ours yet, so the namer waits in its first write
	q, ended := newQueue(), make(chan bool)
	s := &source{q, samples, make(chan error, 1)}
	go func() {
		run(s, os.Getpid(), q, client, nil)
		client.Close()
		ended <- true
	}()
	select {
	case err := <-s.sent:
		must.Do(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("the engine waits for the namer")
	}
	got, in := 0, wire.NewReader(ours)
	for _, err := in.Next(); err == nil; _, err = in.Next() {
		got++
	}
	expect.Equal(t, got, samples, "samples")
	<-ended
}

// When the client is gone, the engine's next write fails.
func TestGoneClient(t *testing.T) {
	ours, client := net.Pipe()
	ours.Close()
	q := newQueue()
	s := &source{q, 1 << 30, make(chan error, 1)}
	run(s, os.Getpid(), q, client, nil)
	expect.Equal(t, <-s.sent, io.ErrClosedPipe, "error")
}

// A queue is bounded, keeps the order, and passes what it holds after its end.
func TestQueue(t *testing.T) {
	q, full := newQueue(), make(chan bool)
	go func() {
		part := make([]byte, maxQueued/8)
		for i := range 10 {
			if i == 8 {
				full <- true
			}
			part[0] = byte(i)
			q.Write(part)
		}
		q.Close()
		_, err := q.Write(part)
		expect.Equal(t, err, io.ErrClosedPipe, "error of a late write")
		full <- true
	}()
	<-full
	time.Sleep(10 * time.Millisecond)
	q.mu.Lock()
	expect.Equal(t, len(q.bytes), maxQueued, "bytes in a full queue")
	q.mu.Unlock()
	all, err := io.ReadAll(q)
	must.Do(t, err)
	<-full
	first := make([]byte, 10)
	for i := range first {
		first[i] = all[i*maxQueued/8]
	}
	expect.True(t, len(all) == maxQueued/8*10 && bytes.Equal(first, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
		"%d bytes, parts %v", len(all), first)
	_, err = q.Read(first)
	expect.Equal(t, err, io.EOF, "error at the end")
}

// Small reads of a full queue do not move its bytes each time.
func TestQueueMovesFew(t *testing.T) {
	q, part, moved := newQueue(), make([]byte, maxQueued/1024), 0
	q.Write(make([]byte, maxQueued))
	for range 1024 {
		q.Read(part)
		if q.read == 0 {
			moved += len(q.bytes)
		}
	}
	expect.True(t, q.left() == 0 && moved <= maxQueued, "%d of %d bytes moved, %d left",
		moved, maxQueued, q.left())
}
