package pool

import (
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
)

// Event is an item that waited in the queue, or a starvation.
type Event struct {
	Starved bool
	Thread  uint64 // that queued the item, or that detected the starvation
	End     time.Time
	Waited  time.Duration // 0 for a starvation
}

// Limits of a watch.
const (
	portTries = 50 // attempts to find the port
	portPause = 100 * time.Millisecond
	endLimit  = 2 * time.Second // after this time, the connection of a session that does not end is closed
)

// Watch passes the events of a process's thread pool to add, until done is closed or the process ends. add is
// not called after Watch has returned. If a session could not be started, Watch returns the reason. It
// returns nil after a session, even if that ended early, and if done was closed before there was one.
func Watch(pid int, done <-chan struct{}, add func(Event)) error {
	s, err := open(pid, done)
	if err != nil || s == nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		follow(s, add)
	}()
	select {
	case <-ended:
	case <-done:
		go s.Stop()
		select {
		case <-ended:
		case <-time.After(endLimit):
		}
	}
	s.Close()
	<-ended
	return nil
}

// open starts a session. A process that has just started has no port for a moment, so open waits for it. The
// session is nil if done is closed during that wait.
func open(pid int, done <-chan struct{}) (*diagnostics.Session, error) {
	config := diagnostics.Config{BufferMB: 16, NoStacks: true, Providers: []diagnostics.Provider{
		{Name: clrevent.Runtime, Keywords: clrevent.KeywordThreading, Level: 4},
		{Name: clrevent.Framework, Keywords: clrevent.KeywordThreadPool, Level: 5}}}
	for try := 1; ; try++ {
		c, err := diagnostics.Process(pid)
		if err == nil {
			return c.Collect(config)
		}
		if try == portTries {
			return nil, err
		}
		select {
		case <-done:
			return nil, nil
		case <-time.After(portPause):
		}
	}
}

// follow reads a session to its end.
func follow(s *diagnostics.Session, add func(Event)) {
	r, kinds := nettrace.NewReader(s), map[*nettrace.Metadata]clrevent.Kind{}
	q := Queue[uint64]{}
	for {
		kind, err := r.Next()
		if err != nil {
			return
		}
		if kind != nettrace.EventKind {
			continue
		}
		e, t := r.Event(), r.Trace()
		k, ok := kinds[e.Meta]
		if !ok {
			k = clrevent.KindOf(e.Meta.Provider, e.Meta.EventID, e.Meta.Version)
			kinds[e.Meta] = k
		}
		q.Late = t.Frequency
		if x, ok := read(&q, k, e, t); ok {
			add(x)
		}
	}
}

// read converts an event of a session to an Event.
func read(q *Queue[uint64], kind clrevent.Kind, e *nettrace.Event, t *nettrace.Trace) (x Event, ok bool) {
	item, good := uint64(0), false
	if kind == clrevent.WorkQueued || kind == clrevent.WorkTaken {
		item, good = clrevent.DecodeWork(e.Payload, t.PointerSize)
	}
	thread, from, to := e.Thread, e.Timestamp, e.Timestamp
	switch {
	case kind == clrevent.PoolAdjusted:
		a, good := clrevent.DecodeAdjustment(e.Payload)
		return Event{Starved: true, Thread: e.Thread, End: t.Time(e.Timestamp)}, good && a.Starved
	case good && kind == clrevent.WorkQueued:
		to, ok = q.Queued(item, e.Timestamp, e.Thread)
	case good:
		thread, from, ok = q.Taken(item, e.Timestamp)
	}
	return Event{Thread: thread, End: t.Time(to), Waited: time.Duration(t.Nanos(to - from))}, ok
}
