// Package inflow reads the messages of recorded processes.
//
// Sources: proc(5) for the CPU times of threads; clock_getcpuclockid(3).
//
// Glossary. To *join* a recording is to get a copy of its samples.
//
// Strategy. Samples are folded into distinct stacks as they arrive, so memory grows with the
// number of different stacks and not with time. Samples are cut to the time of the recording.
// Each process has a socket on which other recordings may join (Linux).
//
// Known gaps: a recording that joins gets samples of CPU and wall time only.
package inflow

import (
	"io"
	"sync"
	"time"

	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/wire"
)

// Process is the connection of one process, and what it has sent.
type Process struct {
	Mu sync.RWMutex // read-held while a profile is built, twice at a time after a second INT
	*collect.Process

	connected time.Time
	began     int64                // when it connected, unix nanoseconds, by the clock of that time
	Gone      chan struct{}        // closed when the stream has ended
	Begin     func(at time.Time)   // called with each possible begin; the earliest counts
	Timed     time.Duration        // length of the recording, from the first sample; 0 = not limited so
	Prove     bool                 // the recording begins with the first sample, which may be late
	Keep      func(m *wire.Module) // keeps images for the names at the end; nil: not kept
	Shared    Sharer               // with other recordings of the process; nil = it is not
	Files     []func(wire.Message) // recording files
	Until     int64                // samples taken later are not wanted; 0 = all are
	late      map[uint64]uint64    // CPU time of those, by thread, until it is taken off the thread's time
	takenOff  uint64               // sum of what was taken off
	From      int64                // when it joined another recording, unix nanoseconds; 0 = it did not
	Relay     bool                 // samples are for other recordings only
	Pool      func()               // watches the thread pool; nil = it is not wanted, or runs
	sealed    bool                 // the stream has ended
	limit     *time.Timer          // starts the recording's time without a sample; set by mayBegin
	Watching  sync.WaitGroup       // of pool: a session that is not stopped stays open in the process
}

func New(pid int, name string) *Process {
	now := time.Now()
	return &Process{Process: collect.NewProcess(pid, name), connected: now, began: now.UnixNano(),
		Gone: make(chan struct{}), Begin: func(time.Time) {}}
}

// Read takes messages until the farewell, or until the stream ends for another reason. Samples after
// the end of the recording are dropped. Other messages, such as totals, are still taken.
func (p *Process) Read(r io.Reader) {
	defer func() {
		if p.limit != nil {
			p.limit.Stop()
		}
	}()
	wr := wire.NewReader(r)
	for {
		m, err := wr.Next()
		p.Mu.Lock()
		if err != nil {
			p.End(err)
			p.sealed = true
			p.Mu.Unlock()
			return
		}
		if p.over(m) {
			p.Stop()
			p.addLate(m)
		} else {
			p.passOn(m)
			p.Receive(p.takeOffLate(m))
		}
		p.sealed = m.Type() == wire.TypeBye
		p.Mu.Unlock()
		if m.Type() == wire.TypeBye {
			return // an engine still restores its target; there is no need to wait for that
		}
	}
}

// Receive adds a message to what the process has sent, and notices the beginning of samples.
func (p *Process) Receive(m wire.Message) {
	switch m := m.(type) {
	case *wire.Hello:
		if p.From != 0 { // if the clock has been set back, the stream began in the future
			m.StartUnixNano = max(min(m.StartUnixNano, time.Now().UnixNano()), p.From)
		}
		p.mayBegin()
		if p.Pool != nil {
			defer p.Receive(&wire.GapName{Code: noStack, Name: "recorded without a stack"})
			p.Watching.Go(p.Pool)
			p.Pool = nil
		}
	case *wire.Module:
		if p.Keep != nil {
			p.Keep(m)
		}
	case *wire.Sample:
		p.Begin(p.moment(m.TimeUnixNano))
		if p.Timed != 0 {
			p.clip(m)
		}
	case *wire.Event:
		p.Begin(time.Now())
	}
	for _, write := range p.Files {
		write(m)
	}
	if !p.Relay || p.lasting(m) {
		p.Take(m)
	}
}

// lasting reports whether later samples need a message.
func (p *Process) lasting(m wire.Message) bool {
	switch m.(type) {
	case *wire.Sample, *wire.Event, *wire.Usage, *wire.Dropped:
		return false
	}
	return true
}

// clip leaves out the wall time of a sample before the recording's first sample.
func (p *Process) clip(s *wire.Sample) {
	first := s.TimeUnixNano
	if p.First() != 0 {
		first = min(first, p.First())
	}
	s.WallNanos = min(s.WallNanos, uint64(s.TimeUnixNano-first))
}

// over reports whether a sample or an event was taken after the recording ended. It clips a sample of
// waiting time that straddles the end, and returns false.
func (p *Process) over(m wire.Message) bool {
	switch s := m.(type) {
	case *wire.Sample:
		until := p.Until
		if first := p.First(); p.Timed != 0 && first != 0 && (until == 0 || until > first+int64(p.Timed)) {
			until = first + int64(p.Timed) // held samples arrive together, before any stop
		}
		return until != 0 && s.TimeUnixNano > until && !cut(s, until)
	case *wire.Event:
		return p.Until != 0 && s.TimeUnixNano > p.Until && s.Flags&wire.EventOpen == 0
	}
	return false
}

// cut clips a sample that was taken after the end, and reports whether some of its time is before the
// end. A sample of CPU time belongs to its moment; any other covers the wall time before it.
func cut(s *wire.Sample, end int64) bool {
	late := uint64(s.TimeUnixNano - end)
	if s.CPUNanos != 0 || s.WallNanos <= late {
		return false
	}
	s.WallNanos -= late
	s.TimeUnixNano = end
	return true
}

// addLate counts the CPU time of a sample that was taken after the recording ended.
func (p *Process) addLate(m wire.Message) {
	if s, ok := m.(*wire.Sample); ok && s.CPUNanos > 0 {
		if p.late == nil {
			p.late = map[uint64]uint64{}
		}
		p.late[s.TID] += s.CPUNanos
	}
}

// takeOffLate takes the CPU time of late samples off the times of their threads and of the process. The
// engine reads the clocks only when it ends. On a busy machine, that is later than the recording's end.
func (p *Process) takeOffLate(m wire.Message) wire.Message {
	u, ok := m.(*wire.Usage)
	if !ok || len(p.late) == 0 || u.CPUNanos == 0 {
		return m
	}
	c, less := *u, p.takenOff
	switch {
	case u.TID == wire.ProcessTID:
	case u.Cause != wire.CauseNone:
		return m
	default:
		less = min(p.late[u.TID], u.CPUNanos)
		p.late[u.TID] -= less
		p.takenOff += less
	}
	c.CPUNanos -= min(less, c.CPUNanos)
	c.KernelNanos = uint64(float64(c.KernelNanos) * float64(c.CPUNanos) / float64(u.CPUNanos))
	return &c
}

// StopAt sets the end of the recording, unix nanoseconds.
func (p *Process) StopAt(t int64) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Until = t
}

// firstSample is how long an engine may take to walk its first stack until the recording's time starts
// anyway.
const firstSample = 10 * time.Second

// mayBegin starts the recording's time. If the first sample is to start it, mayBegin only limits the
// wait.
func (p *Process) mayBegin() {
	switch {
	case !p.Prove:
		p.Begin(time.Now())
	case p.limit == nil: // else a later greeting
		p.limit = time.AfterFunc(firstSample, func() { p.Begin(time.Now()) })
	}
}

// moment returns when a sample was taken. It returns the present time if that was before the process
// connected or is in the future. A sample may be held until its stack can be walked.
func (p *Process) moment(unixNano int64) time.Time {
	at, now := time.Unix(0, unixNano), time.Now()
	if at.Before(p.connected) || at.After(now) {
		return now
	}
	return at
}

// clockSet returns how far the system's clock has been set since the process connected. The times of its
// samples do not follow such a change: they add the monotonic clock to the first reading of the system's
// clock. A result below a second is 0, because the two clocks are not read at the same moment.
func (p *Process) clockSet(now time.Time) time.Duration {
	wall := time.Duration(now.UnixNano() - p.began)
	if set := wall - now.Sub(p.connected); set.Abs() >= time.Second {
		return set
	}
	return 0
}

// Sharer gives the stream of one process to other recordings.
type Sharer interface {
	pass(m wire.Message) // with the process's lock held
	end()
}

// passOn gives a message to the recordings that share the process.
func (p *Process) passOn(m wire.Message) {
	if p.Shared != nil {
		p.Shared.pass(m)
	}
}

// EndSharing ends the streams of those recordings.
func (p *Process) EndSharing() {
	if p.Shared != nil {
		p.Shared.end()
	}
}
