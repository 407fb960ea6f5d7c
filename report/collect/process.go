package collect

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/unwind"
)

// maxStacks bounds the distinct stacks of one process. Samples with further stacks are dropped and counted.
const maxStacks = 1 << 20

// frameKey identifies a frame of a profile.
type frameKey struct {
	kind     unwind.Kind
	doubtful bool
	kernel   bool // the kernel, below which no frame is known
	resumer  bool // it only resumed an async method
	gap      uint8
	module   int32  // index into Process.modules, -1 = none
	method   uint32 // managed: the method's ID, and then addr is 0
	addr     uint64 // otherwise: the address to look up
	place    int32  // managed: from 1 into Process.places, 0 = unknown
}

// place is a line of a source file.
type place struct {
	file string
	line uint32
}

// stack is one distinct stack of one thread.
type stack struct {
	tid       uint64
	gap       uint8
	frames    []int32 // indices into Process.frames, leaf first
	count     int64
	wall, cpu uint64
	cpuCount  int64 // of count, with CPU time

	event   uint8 // package wire's kind, 0 = samples
	open    bool
	owner   uint64
	name    string // type
	text    string // message
	sum     uint64
	longest uint64
}

// Process collects the messages of one process, from its stream or from a recording. It merges equal stacks
// and adds up their values. Build makes a profile of it. It is not safe for concurrent use.
type Process struct {
	PID            int
	Name           string // of the executable
	KeepSuspension bool   // keep frames in which a thread waits for the sampler's own suspension

	hello    *wire.Hello
	modules  []wire.Module // every version that was sent
	current  map[uint32]int32
	methods  map[uint32]*wire.Method
	lines    map[uint64]int32 // by address: places
	places   []place
	placed   map[place]int32
	threads  map[uint64]string
	seen     map[uint64]bool // threads that have samples or events
	gapNames map[uint8]string

	frames     []frameKey
	frameIndex map[frameKey]int32
	stacks     []stack
	stackIndex map[string]int32
	key        []byte  // reused by stackOf
	row        []int32 // reused by sample and event

	counters    map[string]uint64
	suspended   wire.Histogram
	handler     wire.Histogram             // time in the probe's handler
	parts       [len(parts)]wire.Histogram // of the time in suspended
	tries       map[string]uint64          // suspensions of single threads by "verdict/result"
	usages      map[uint64]*usage          // CPU time of threads, by TID
	clock       *wire.Usage                // of the process; nil = unknown
	gaps        map[uint8]int64
	samples     int64
	complete    int64
	overflow    int64    // samples and events dropped because of maxStacks
	moments     []moment // samples in the order of their arrival
	activities  map[wire.Activity]*export.Activity
	untimed     int64 // samples that are not in moments
	events      [wire.NumEvents]eventSum
	texts       map[string]bool
	drops       map[dropKey]*wire.Dropped
	waits       []oneWait // the longest
	unlisted    int64     // waits that are not in waits
	notes       []string
	first, last int64 // unix nanoseconds of the first sample, and of the last sample or event
	farewell    string
	ended       error // how the stream ended; nil while it is open and after a farewell
}

// NewProcess returns a Process without messages.
func NewProcess(pid int, name string) *Process {
	return &Process{PID: pid, Name: name, current: map[uint32]int32{}, methods: map[uint32]*wire.Method{},
		lines: map[uint64]int32{}, placed: map[place]int32{},
		threads: map[uint64]string{}, seen: map[uint64]bool{}, gapNames: map[uint8]string{},
		frameIndex: map[frameKey]int32{}, stackIndex: map[string]int32{}, counters: map[string]uint64{},
		tries: map[string]uint64{}, usages: map[uint64]*usage{}, gaps: map[uint8]int64{}}
}

// Take adds a message. It keeps m.
func (p *Process) Take(m wire.Message) {
	switch m := m.(type) {
	case *wire.Hello:
		p.hello = m
	case *wire.Module:
		p.module(m)
	case *wire.Method:
		p.methods[m.ID] = m
	case *wire.Line:
		p.line(m)
	case *wire.Thread:
		p.threads[m.TID] = m.Name
	case *wire.GapName:
		p.gapNames[m.Code] = m.Name
	case *wire.Sample:
		p.sample(m)
	case *wire.Event:
		p.event(m)
	case *wire.Dropped:
		p.drop(m)
	case *wire.Stats:
		p.stat(m)
	case *wire.Usage:
		p.usage(m)
	case *wire.Note:
		p.notes = append(p.notes, m.Text)
	case *wire.Bye:
		p.farewell = m.Reason + "."
	}
}

// End ends the stream. err is io.EOF, or another error that ended the stream. End ignores a timeout
// of the reader.
func (p *Process) End(err error) {
	if p.farewell == "" && !errors.Is(err, os.ErrDeadlineExceeded) {
		p.ended = err
	}
}

// Stop ends the stream because the recording has ended.
func (p *Process) Stop() { p.farewell = "stopped" }

// Farewell returns why the stream ended as intended, "" if it did not.
func (p *Process) Farewell() string { return strings.TrimSuffix(p.farewell, ".") }

// Counts are numbers of samples, events, and threads.
type Counts struct {
	Samples, Complete int64 // samples, and those without a gap
	Events            int64 // events of the runtime
	Threads           int   // threads with samples or events
}

// Counts returns the current numbers.
func (p *Process) Counts() Counts {
	c := Counts{Samples: p.samples, Complete: p.complete, Threads: len(p.seen)}
	for i := range p.events {
		c.Events += p.events[i].count
	}
	return c
}

// First returns the time of the earliest sample in unix nanoseconds, or 0.
func (p *Process) First() int64 { return p.first }

// Troubled reports whether there are notes for the user, or the stream ended badly.
func (p *Process) Troubled() bool { return len(p.notes) > 0 || p.end() != "" }

// Probed reports whether an engine outside the process took samples.
func (p *Process) Probed() bool {
	for key := range p.counters {
		if strings.HasPrefix(key, wire.StatEngine) {
			return true
		}
	}
	return false
}

// Tables writes what a reader who joins later needs for the samples that follow: the hello, modules,
// methods, lines, names of threads and gaps, and the counters of the clock.
func (p *Process) Tables(w *wire.Writer) {
	if p.hello != nil {
		w.Hello(p.hello)
	}
	for i := range p.modules {
		w.Module(&p.modules[i])
	}
	for _, m := range p.methods {
		w.Method(m)
	}
	for addr, at := range p.lines {
		w.Line(&wire.Line{Addr: addr, File: p.places[at-1].file, Line: p.places[at-1].line})
	}
	for tid, name := range p.threads {
		w.Thread(&wire.Thread{TID: tid, Name: name})
	}
	for code, name := range p.gapNames {
		w.GapName(code, name)
	}
	for key, value := range p.counters {
		if strings.HasPrefix(key, wire.StatEngine+"clock") {
			w.Stats(key, value)
		}
	}
}

// parts divide the time in which one thread is suspended. If the runtime is suspended as a whole, there are
// none.
var parts = [...]struct{ key, name string }{
	{wire.StatContext, "context"}, {wire.StatWalk, "own walk"}, {wire.StatSnapshot, "DoStackSnapshot"},
}

// maxTries bounds the distinct answers kept: a profiler knows a few dozen.
const maxTries = 1000

func (p *Process) stat(m *wire.Stats) {
	if p.suspended.Set(wire.StatSuspended, m) || p.handler.Set(handlerKey, m) {
		return
	}
	for i := range parts {
		if p.parts[i].Set(parts[i].key, m) {
			return
		}
	}
	if answer, ok := strings.CutPrefix(m.Key, wire.StatTries); ok {
		if len(p.tries) < maxTries {
			p.tries[answer] = m.Value
		}
		return
	}
	p.counters[m.Key] = m.Value
}

// module adds a version of a module. Frames taken while another image was there keep that version.
func (p *Process) module(m *wire.Module) {
	if i, ok := p.current[m.ID]; ok && p.modules[i] == *m {
		return
	}
	p.current[m.ID] = int32(len(p.modules))
	p.modules = append(p.modules, *m)
}

// gapName is the sender's name of a gap code.
func (p *Process) gapName(code uint8) string {
	if n, ok := p.gapNames[code]; ok {
		return n
	}
	if code == wire.GapCut {
		return "too-many-frames"
	}
	return fmt.Sprintf("gap-%d", code)
}

// end reports in a line how the stream ended if it did not end well.
func (p *Process) end() string {
	var fe *wire.FormatError
	var ve *wire.VersionError
	switch {
	case p.farewell != "" || p.ended == nil:
		return ""
	case errors.As(p.ended, &fe), errors.As(p.ended, &ve):
		return fmt.Sprintf("process %d (%s): %v; samples until then are kept", p.PID, p.Name, p.ended)
	}
	return fmt.Sprintf("process %d (%s) was cut off (killed or crashed); the samples until then are kept",
		p.PID, p.Name)
}
