package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/wire"
)

// maxStacks bounds the distinct stacks kept of one process. A profile with
// more says nothing a person can read, and the memory would never end.
const maxStacks = 1 << 20

// frameKey is what makes two frames the same frame of a profile.
type frameKey struct {
	kind     unwind.Kind
	doubtful bool
	kernel   bool // the kernel, below which no frame is known
	gap      uint8
	module   int32  // index into process.modules, -1 = none
	method   uint32 // managed: the method's ID, and then addr is 0
	addr     uint64 // otherwise: the address to look up
	place    int32  // managed: from 1 into process.places, 0 = not known
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
	frames    []int32 // indices into process.frames, leaf first
	count     int64
	wall, cpu uint64
	cpuCount  int64 // of count, with processor time

	event   uint8 // wire's kind, 0 = samples
	open    bool
	owner   uint64
	name    string // type
	text    string // message
	sum     uint64
	longest uint64
}

// process is what one connection told.
type process struct {
	mu   sync.RWMutex // read-held while a profile is built, twice at a time after a second INT
	pid  int
	name string // of the executable, from the kernel

	connected time.Time
	gone      chan struct{}        // closed when the stream has ended
	begin     func(at time.Time)   // is called when samples come, with the time of the first
	timed     time.Duration        // of the recording, from the first sample; 0 = it has none
	prove     bool                 // it may take until the first sample, though all threads are looked at
	keep      func(m *wire.Module) // takes images for the names at the end; nil = nobody does
	shared    sharer               // with other recordings of the process; nil = it is not
	keepProbe bool                 // keep frames that the suspension itself put on a stack

	hello    *wire.Hello
	modules  []wire.Module // every version ever told
	current  map[uint32]int32
	methods  map[uint32]*wire.Method
	lines    map[uint64]int32 // by address: places
	places   []place
	placed   map[place]int32
	threads  map[uint64]string
	seen     map[uint64]bool // threads that have samples
	gapNames map[uint8]string

	frames     []frameKey
	frameIndex map[frameKey]int32
	stacks     []stack
	stackIndex map[string]int32
	key        []byte  // reused by add
	row        []int32 // reused by add

	counters    map[string]uint64
	suspended   wire.Histogram
	handler     wire.Histogram             // time in the probe's handler
	parts       [len(parts)]wire.Histogram // of the time in suspended
	tries       map[string]uint64          // suspensions of single threads by "verdict/result"
	usages      map[uint64]*usage          // processor time of threads, by TID
	clock       *wire.Usage                // of the process; nil = unknown
	gaps        map[uint8]int64
	samples     int64
	complete    int64
	overflow    int64 // samples not kept because of maxStacks
	events      [wire.NumEvents]eventSum
	texts       map[string]bool
	waits       []oneWait // the longest
	unlisted    int64     // waits that are in no list
	notes       []string
	first, last int64 // unix nanoseconds of the samples
	until       int64 // samples taken later are not wanted; 0 = all are
	farewell    string
	ended       error // how the stream ended; nil while it goes on and after a farewell
}

func newProcess(pid int, name string) *process {
	return &process{pid: pid, name: name, connected: time.Now(), gone: make(chan struct{}), begin: func(time.Time) {}, current: map[uint32]int32{}, methods: map[uint32]*wire.Method{}, lines: map[uint64]int32{}, placed: map[place]int32{},
		threads: map[uint64]string{}, seen: map[uint64]bool{}, gapNames: map[uint8]string{},
		frameIndex: map[frameKey]int32{}, stackIndex: map[string]int32{}, counters: map[string]uint64{}, tries: map[string]uint64{}, usages: map[uint64]*usage{}, gaps: map[uint8]int64{}}
}

// read takes messages until the farewell, or until the stream ends for another reason. After
// the end of the recording come the figures of all that was before, and no more samples are taken.
func (p *process) read(r io.Reader) {
	wr := wire.NewReader(r)
	for {
		m, err := wr.Next()
		p.mu.Lock()
		if err != nil {
			if p.farewell == "" && !errors.Is(err, os.ErrDeadlineExceeded) { // the deadline is settle's
				p.ended = err
			}
			p.mu.Unlock()
			return
		}
		if p.over(m) {
			p.farewell = "stopped"
		} else {
			p.passOn(m)
			p.take(m)
		}
		p.mu.Unlock()
		if m.Type() == wire.TypeBye {
			return // an engine goes on with its target, which nobody has to wait for
		}
	}
}

// over reports whether a message is a sample after the end. Of one before and after it,
// the time before is left.
func (p *process) over(m wire.Message) bool {
	switch s := m.(type) {
	case *wire.Sample:
		until := p.until
		if p.timed != 0 && p.first != 0 && (until == 0 || until > p.first+int64(p.timed)) {
			until = p.first + int64(p.timed) // held samples come all at once, before anybody can stop them
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

func (p *process) take(m wire.Message) {
	switch m := m.(type) {
	case *wire.Hello:
		p.mayBegin()
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
		p.begin(p.moment(m.TimeUnixNano))
		p.sample(m)
	case *wire.Event:
		p.begin(time.Now())
		p.event(m)
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

// parts are what the time in which one thread is suspended is spent on. Programs
// whose runtime is suspended as a whole have none.
var parts = [...]struct{ key, name string }{
	{wire.StatContext, "context"}, {wire.StatWalk, "own walk"}, {wire.StatSnapshot, "DoStackSnapshot"},
}

// maxTries bounds the distinct answers kept: a profiler knows a few dozen.
const maxTries = 1000

func (p *process) stat(m *wire.Stats) {
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

// module adds a version: frames that were taken while another image was there
// keep the one they belong to.
func (p *process) module(m *wire.Module) {
	if i, ok := p.current[m.ID]; ok && p.modules[i] == *m {
		return
	}
	p.current[m.ID] = int32(len(p.modules))
	p.modules = append(p.modules, *m)
	if p.keep != nil {
		p.keep(m)
	}
}

func (p *process) sample(s *wire.Sample) {
	p.samples++
	if s.Gap == 0 {
		p.complete++
	} else {
		p.gaps[s.Gap]++
	}
	p.seen[s.TID] = true
	if p.first == 0 || s.TimeUnixNano < p.first {
		p.first = s.TimeUnixNano
	}
	p.last = max(p.last, s.TimeUnixNano)
	if p.timed != 0 {
		s.WallNanos = min(s.WallNanos, uint64(s.TimeUnixNano-p.first))
	}
	p.row = p.row[:0]
	for i := range s.Frames {
		if s.Frames[i].Flags&wire.FrameProbe != 0 && !p.keepProbe {
			continue
		}
		if s.Frames[i].Flags&wire.FrameKernel != 0 && len(p.row) == 0 {
			p.row = append(p.row, p.frameOf(frameKey{kind: unwind.KindNative, module: -1, kernel: true}))
		}
		p.row = append(p.row, p.frame(&s.Frames[i]))
	}
	i, ok := p.stackOf(&stack{tid: s.TID, gap: s.Gap})
	if !ok {
		p.overflow++
		return
	}
	st := &p.stacks[i]
	st.count++
	st.wall += s.WallNanos
	if s.CPUNanos > 0 {
		st.cpu = min(st.cpu+min(s.CPUNanos, maxNanos), maxNanos)
		st.cpuCount++
	}
}

// stackOf finds or makes the stack of p.row which is like s.
func (p *process) stackOf(s *stack) (int32, bool) {
	p.key = binary.AppendUvarint(p.key[:0], s.tid)
	p.key = append(p.key, s.gap, s.event, bit(s.open))
	p.key = binary.AppendUvarint(p.key, s.owner)
	for _, text := range [...]string{s.name, s.text} {
		p.key = binary.AppendUvarint(p.key, uint64(len(text)))
		p.key = append(p.key, text...)
	}
	for _, f := range p.row {
		p.key = binary.AppendUvarint(p.key, uint64(f))
	}
	if i, ok := p.stackIndex[string(p.key)]; ok {
		return i, true
	}
	if len(p.stacks) >= maxStacks {
		return 0, false
	}
	i := int32(len(p.stacks))
	s.frames = append([]int32(nil), p.row...)
	p.stacks = append(p.stacks, *s)
	p.stackIndex[string(p.key)] = i
	return i, true
}

// Bounds of what is kept of lines: above them frames have none.
const (
	maxLines       = 1 << 20
	maxLinedStacks = maxStacks / 2 // lines make stacks many: then there shall be room for those that are different without
)

// line takes where the code at an address comes from.
func (p *process) line(m *wire.Line) {
	at := place{m.File, m.Line}
	i, ok := p.placed[at]
	switch {
	case m.File == "" || m.Line == 0:
		delete(p.lines, m.Addr)
		return
	case len(p.lines) >= maxLines || !ok && len(p.places) >= maxLines:
		return
	case !ok:
		p.places = append(p.places, at)
		i = int32(len(p.places))
		p.placed[at] = i
	}
	p.lines[m.Addr] = i
}

// frame is the index of a frame. Managed frames of one line of a method are
// one frame whatever their ip; others are told apart by the address looked up.
func (p *process) frame(f *wire.Frame) int32 {
	k := frameKey{kind: f.Kind, doubtful: f.Trust.Doubtful() && f.Kind != unwind.KindGap, gap: f.Gap, module: -1}
	if i, ok := p.current[f.Module]; ok && f.Module != 0 {
		k.module = i
	}
	switch {
	case f.Kind == unwind.KindGap:
	case f.Method != 0:
		k.method = f.Method
		if len(p.lines) > 0 && len(p.stacks) < maxLinedStacks {
			k.place = p.lines[f.Addr()]
		}
	default:
		k.addr = f.Addr()
	}
	return p.frameOf(k)
}

// frameOf finds or makes the index of a frame.
func (p *process) frameOf(k frameKey) int32 {
	if i, ok := p.frameIndex[k]; ok {
		return i
	}
	i := int32(len(p.frames))
	p.frames = append(p.frames, k)
	p.frameIndex[k] = i
	return i
}

// gapName is the sender's name of a gap code.
func (p *process) gapName(code uint8) string {
	if n, ok := p.gapNames[code]; ok {
		return n
	}
	if code == wire.GapCut {
		return "too-many-frames"
	}
	return fmt.Sprintf("gap-%d", code)
}

// end reports in a line how the stream ended if it did not end well.
func (p *process) end() string {
	var fe *wire.FormatError
	var ve *wire.VersionError
	switch {
	case p.farewell != "" || p.ended == nil:
		return ""
	case errors.As(p.ended, &fe), errors.As(p.ended, &ve):
		return fmt.Sprintf("process %d (%s): %v; samples until then are kept", p.pid, p.name, p.ended)
	}
	return fmt.Sprintf("process %d (%s) was cut off (killed or crashed); the samples until then are kept", p.pid, p.name)
}
