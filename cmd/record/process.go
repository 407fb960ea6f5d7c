package record

import (
	"io"
	"sync"
	"time"

	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/wire"
)

// process is the connection of one process, and what it has sent.
type process struct {
	mu sync.RWMutex // read-held while a profile is built, twice at a time after a second INT
	*collect.Process

	connected time.Time
	gone      chan struct{}        // closed when the stream has ended
	begin     func(at time.Time)   // is called when samples come, with the time of the first
	timed     time.Duration        // of the recording, from the first sample; 0 = it has none
	prove     bool                 // it may take until the first sample, though all threads are looked at
	keep      func(m *wire.Module) // keeps images for the names at the end; nil = nobody does
	shared    sharer               // with other recordings of the process; nil = it is not
	files     []func(wire.Message) // recording files
	until     int64                // samples taken later are not wanted; 0 = all are
	from      int64                // when it joined another recording, unix nanoseconds; 0 = it did not
	relay     bool                 // samples are for other recordings only
	pool      func()               // watches the thread pool; nil = it is not wanted, or runs
	sealed    bool                 // the stream has ended
	watching  sync.WaitGroup       // of pool: a session that is not stopped stays open in the process
}

func newProcess(pid int, name string) *process {
	return &process{Process: collect.NewProcess(pid, name), connected: time.Now(), gone: make(chan struct{}), begin: func(time.Time) {}}
}

// read takes messages until the farewell, or until the stream ends for another reason. After
// the end of the recording come the figures of all that was before, and no more samples are taken.
func (p *process) read(r io.Reader) {
	wr := wire.NewReader(r)
	for {
		m, err := wr.Next()
		p.mu.Lock()
		if err != nil {
			p.End(err)
			p.sealed = true
			p.mu.Unlock()
			return
		}
		if p.over(m) {
			p.Stop()
		} else {
			p.passOn(m)
			p.take(m)
		}
		p.sealed = m.Type() == wire.TypeBye
		p.mu.Unlock()
		if m.Type() == wire.TypeBye {
			return // an engine goes on with its target, which nobody has to wait for
		}
	}
}

// take adds a message to what the process has sent, and notices the beginning of samples.
func (p *process) take(m wire.Message) {
	switch m := m.(type) {
	case *wire.Hello:
		m.StartUnixNano = max(m.StartUnixNano, p.from)
		p.mayBegin()
		if p.pool != nil {
			defer p.take(&wire.GapName{Code: noStack, Name: "recorded without a stack"})
			p.watching.Go(p.pool)
			p.pool = nil
		}
	case *wire.Module:
		if p.keep != nil {
			p.keep(m)
		}
	case *wire.Sample:
		p.begin(p.moment(m.TimeUnixNano))
		if p.timed != 0 {
			p.clip(m)
		}
	case *wire.Event:
		p.begin(time.Now())
	}
	for _, write := range p.files {
		write(m)
	}
	if !p.relay || p.lasting(m) {
		p.Take(m)
	}
}

// lasting reports whether later samples need a message.
func (p *process) lasting(m wire.Message) bool {
	switch m.(type) {
	case *wire.Sample, *wire.Event, *wire.Usage, *wire.Dropped:
		return false
	}
	return true
}

// clip leaves out the wall time of a sample before the recording's first sample.
func (p *process) clip(s *wire.Sample) {
	first := s.TimeUnixNano
	if p.First() != 0 {
		first = min(first, p.First())
	}
	s.WallNanos = min(s.WallNanos, uint64(s.TimeUnixNano-first))
}

// over reports whether a message is a sample after the end. Of one before and after it,
// the time before is left.
func (p *process) over(m wire.Message) bool {
	switch s := m.(type) {
	case *wire.Sample:
		until := p.until
		if first := p.First(); p.timed != 0 && first != 0 && (until == 0 || until > first+int64(p.timed)) {
			until = first + int64(p.timed) // held samples come all at once, before anybody can stop them
		}
		return until != 0 && s.TimeUnixNano > until && !cut(s, until)
	case *wire.Event:
		return p.until != 0 && s.TimeUnixNano > p.until && s.Flags&wire.EventOpen == 0
	}
	return false
}

// cut cuts a sample that was taken after the end, and reports whether anything is left. One
// of processor time is of its moment, others are of all the time that they stand for.
func cut(s *wire.Sample, end int64) bool {
	late := uint64(s.TimeUnixNano - end)
	if s.CPUNanos != 0 || s.WallNanos <= late {
		return false
	}
	s.WallNanos -= late
	s.TimeUnixNano = end
	return true
}

// stopAt sets the end of the recording, unix nanoseconds.
func (p *process) stopAt(t int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = t
}

// firstSample is how long an engine that has begun may take to be able to walk a stack.
const firstSample = 10 * time.Second

// mayBegin lets the recording's time run.
func (p *process) mayBegin() {
	if p.prove {
		time.AfterFunc(firstSample, func() { p.begin(time.Now()) })
		return
	}
	p.begin(time.Now())
}

// moment returns when a sample was taken, if the process had connected by then: a sample may
// be held until its stack can be walked.
func (p *process) moment(unixNano int64) time.Time {
	at, now := time.Unix(0, unixNano), time.Now()
	if at.Before(p.connected) || at.After(now) {
		return now
	}
	return at
}
