package collect

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/unwind"
)

// maxMoments bounds the samples whose time is kept, 32 bytes each.
const maxMoments = 1 << 21

// moment is one sample.
type moment struct {
	at    int64 // unix nanoseconds
	wall  uint64
	stack int32
	cpu   bool // has CPU time

	activity *export.Activity
}

// activity returns the one copy of an Activity's ids, nil if there are none or too many.
func (p *Process) activity(a wire.Activity) *export.Activity {
	if a == (wire.Activity{}) || len(p.activities) >= maxMoments {
		return nil
	}
	known := p.activities[a]
	if known == nil {
		known = &export.Activity{Trace: a.Trace, Span: a.Span}
		if p.activities == nil {
			p.activities = map[wire.Activity]*export.Activity{}
		}
		p.activities[a] = known
	}
	return known
}

// moment keeps the time of a sample.
func (p *Process) moment(stack int32, s *wire.Sample) {
	if len(p.moments) >= maxMoments {
		p.untimed++
		return
	}
	p.moments = append(p.moments,
		moment{at: s.TimeUnixNano, wall: min(s.WallNanos, maxNanos), stack: stack, cpu: s.CPUNanos > 0,
			activity: p.activity(s.Activity)})
}

func (p *Process) sample(s *wire.Sample) {
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
	p.row = p.row[:0]
	for i := range s.Frames {
		if s.Frames[i].Flags&wire.FrameProbe != 0 && !p.KeepSuspension {
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
	st.wall = plus(st.wall, s.WallNanos)
	p.moment(i, s)
	if s.CPUNanos > 0 {
		st.cpu = plus(st.cpu, s.CPUNanos)
		st.cpuCount++
	}
}

// moments lists the samples of a process by their time. first is its first stack.
func (b *builder) moments(p *Process, first int) {
	for _, m := range p.moments {
		b.p.Samples = append(b.p.Samples,
			export.Sample{Stack: int32(first) + m.stack, At: m.at, Wall: int64(m.wall),
				CPU: m.cpu, Activity: m.activity})
	}
	b.p.Stats.Untimed += p.untimed
	slices.SortStableFunc(b.p.Samples, func(x, y export.Sample) int { return cmp.Compare(x.At, y.At) })
}

// stackOf finds or adds the stack with the frames of p.row and the other fields of s. It returns false
// if there are too many.
func (p *Process) stackOf(s *stack) (int32, bool) {
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

// Bounds of source positions. Frames beyond them have none.
const (
	maxLines = 1 << 20
	// Source positions multiply the distinct stacks. Half of the room is for stacks that
	// differ without them.
	maxLinedStacks = maxStacks / 2
)

// line keeps the source position of an address. Without a file or a line, it removes the position.
func (p *Process) line(m *wire.Line) {
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

// frame returns the index of a frame. Managed frames of one line of a method are one frame at
// any IP. Other frames are distinguished by the address that is looked up.
func (p *Process) frame(f *wire.Frame) int32 {
	k := frameKey{kind: f.Kind, doubtful: f.Trust.Doubtful() && f.Kind != unwind.KindGap, gap: f.Gap,
		module: -1, resumer: f.Flags&wire.FrameResumer != 0 && f.Kind != unwind.KindGap}
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
func (p *Process) frameOf(k frameKey) int32 {
	if i, ok := p.frameIndex[k]; ok {
		return i
	}
	i := int32(len(p.frames))
	p.frames = append(p.frames, k)
	p.frameIndex[k] = i
	return i
}
