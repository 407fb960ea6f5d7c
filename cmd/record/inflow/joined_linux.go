package inflow

import (
	"net"
	"sync"
	"time"

	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/report/wire"
)

// joined is another recording of the process, which gets the samples of this one.
type joined struct {
	c     *net.UnixConn
	q     Request
	pid   int   // of the target
	own   bool  // the recording's tool is this process
	since int64 // when it begins, unix nanoseconds
	set   int64 // nanoseconds to add to the times of samples, see clockSet
	times *times

	mu      sync.Mutex
	w       *wire.Writer // messages that are not in buf yet
	buf     []byte       // to be sent
	dropped uint64       // samples for which there was no room
	cpu     uint64       // samples
	wall    uint64
	over    bool // no more messages are added
	timers  [2]*time.Timer
	final   *clocks // when the count of CPU time ended; nil = it has not ended
	wake    chan struct{}
	done    chan struct{} // closed when write has ended
}

// take adds a message. It returns false if the recording gets no more.
func (j *joined) take(m wire.Message) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over {
		return false
	}
	unsent := j.w.Len()
	switch m := m.(type) {
	case *wire.Hello, *wire.Module, *wire.Method, *wire.Line, *wire.Thread, *wire.GapName:
		j.w.Message(m)
	case *wire.Sample:
		j.sample(m)
	case *wire.Usage:
		if j.final == nil {
			j.times.ended(m)
		}
	}
	if j.w.Len() == unsent {
		return true
	}
	if len(j.buf)+j.w.Len() > maxUnsentAt {
		j.stop()
		j.c.Close() // it does not read
		return false
	}
	if j.w.Len() > flushUnsent {
		j.flush()
	}
	j.notify()
	return true
}

// sample adds a sample of a kind that is wanted, if there is room. It leaves out waiting time before
// the recording begins.
func (j *joined) sample(m *wire.Sample) {
	clipped := *m
	clipped.TimeUnixNano += j.set
	cpu, age := m.CPUNanos > 0, clipped.TimeUnixNano-j.since
	switch {
	case age < 0 || cpu && !j.q.CPU || !cpu && !j.q.Wall || j.late(&clipped):
		return
	case len(j.buf)+j.w.Len() > maxUnsent:
		j.dropped++
		return
	case cpu:
		j.cpu++
	default:
		j.wall++
	}
	clipped.WallNanos = min(m.WallNanos, uint64(age))
	j.w.Sample(&clipped)
}

// late reports whether a sample lies entirely after the time that is wanted.
func (j *joined) late(m *wire.Sample) bool {
	begin := m.TimeUnixNano
	if m.CPUNanos == 0 {
		begin -= int64(min(m.WallNanos, uint64(m.TimeUnixNano)))
	}
	return !j.q.Until.IsZero() && begin >= j.q.Until.UnixNano()
}

// flush moves the messages to buf, from which write sends them.
func (j *joined) flush() {
	j.buf = append(j.buf, j.w.Bytes()...)
	j.w.Reset()
}

// notify wakes write.
func (j *joined) notify() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

func (j *joined) stop() {
	j.over = true
	for _, t := range j.timers {
		if t != nil {
			t.Stop()
		}
	}
	j.notify()
}

// begin returns when a request begins in unix nanoseconds, 0 if it begins at once.
func (q *Request) begin() int64 {
	if q.From.IsZero() {
		return 0
	}
	return q.From.UnixNano()
}

// schedule starts the timers that begin and end the count of CPU time.
func (j *joined) schedule() {
	if wait := time.Until(j.q.From); wait > 0 {
		j.timers[0] = time.AfterFunc(wait, j.beginTimes)
	}
	if !j.q.Until.IsZero() {
		j.timers[1] = time.AfterFunc(time.Until(j.q.Until), j.endTimes)
	}
}

// beginTimes begins the count of CPU time.
func (j *joined) beginTimes() {
	now := newTimes(j.pid, j.times.first)
	j.mu.Lock()
	defer j.mu.Unlock()
	now.cause = j.times.cause
	j.times = now
}

// endTimes stops the count of CPU time. If the process has ended, it has no clock. Then the count goes
// on until this recording has reported the times of the process and its threads.
func (j *joined) endTimes() {
	now := measure(j.pid)
	j.mu.Lock()
	defer j.mu.Unlock()
	if now.process > 0 {
		j.final = &now
	}
}

// finish writes the CPU times and the farewell.
func (j *joined) finish(why string) {
	now := measure(j.pid)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over {
		return
	}
	switch {
	case j.final != nil:
		now = *j.final
	case time.Now().UnixNano() < j.since: // it is too early
		now = j.times.before
	}
	j.times.write(j.w, now)
	for _, s := range []struct {
		key   string
		value uint64
	}{{"shared", 1}, {"timed", j.cpu}, {"outside", j.wall}, {"dropped", j.dropped}} {
		j.w.Stats(wire.StatEngine+s.key, s.value)
	}
	j.w.Bye(why)
	j.stop()
}

// write sends the messages until the recording is over or the connection fails.
func (j *joined) write() {
	defer close(j.done)
	defer j.c.CloseWrite()
	for {
		<-j.wake
		j.mu.Lock()
		if !j.over && len(j.buf) == 0 { // more will come soon
			j.mu.Unlock()
			time.Sleep(j.pause(time.Now()))
			j.mu.Lock()
		}
		j.flush()
		send, over := j.buf, j.over
		j.buf = nil
		j.mu.Unlock()
		if !j.own {
			j.c.SetWriteDeadline(time.Now().Add(joinLimit))
		}
		if _, err := j.c.Write(send); err != nil {
			j.mu.Lock()
			j.over = true
			j.mu.Unlock()
			j.c.Close()
			return
		}
		if over {
			return
		}
	}
}

// pause returns how long write waits for more messages. All recordings of the agent write at the same
// moments, between which the agent can sleep.
func (j *joined) pause(now time.Time) time.Duration {
	if j.own {
		return shareOwn - time.Duration(now.UnixNano())%shareOwn
	}
	return shareEvery
}

// awaitEnd ends the sharing when the joined recording closes its side of the connection. If the process has
// ended, this recording ends too. Then awaitEnd waits until the last samples and CPU times are sent.
func (j *joined) awaitEnd() {
	j.c.SetReadDeadline(time.Time{})
	j.c.Read(make([]byte, 1))
	if _, lives := procstat.CPUTime(j.pid); !lives {
		select {
		case <-j.done:
		case <-time.After(endLimit):
		}
	}
	j.finish("stopped")
	<-j.done
	j.c.Close()
}
