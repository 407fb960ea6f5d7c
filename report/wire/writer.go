package wire

import "encoding/binary"

// lengthBytes is the space that begin reserves for a payload's length. It is fixed, so that
// the payload does not move when its length is known.
const lengthBytes = 3

// Writer appends messages to a buffer. It is not safe for concurrent use.
// Methods allocate only when the buffer is too small. They take pointers, so that a
// caller's arrays are not copied.
type Writer struct {
	buf  []byte
	mark int               // where the open message's payload begins
	sent map[string]uint64 // by Counter
}

// NewWriter returns a Writer that appends to buf[:0]. The writer owns the buffer.
func NewWriter(buf []byte) *Writer { return &Writer{buf: buf[:0]} }

// Bytes returns the messages appended since the last Reset, whole messages
// only. The slice is valid until the next call.
func (w *Writer) Bytes() []byte { return w.buf }

// Len is len(Bytes()).
func (w *Writer) Len() int { return len(w.buf) }

// Reset empties the buffer and keeps its capacity.
func (w *Writer) Reset() { w.buf = w.buf[:0] }

// Hello appends m. A Version of 0 is written as the package's Version.
func (w *Writer) Hello(m *Hello) {
	version := m.Version
	if version == 0 {
		version = Version
	}
	w.begin(TypeHello)
	w.uint(version)
	w.uint(m.PID)
	w.string(m.Arch)
	w.string(m.Runtime)
	w.uint(uint64(m.StartUnixNano))
	w.uint(m.RateMilliHz)
	w.end()
}

// Module appends m.
func (w *Writer) Module(m *Module) {
	w.begin(TypeModule)
	w.uint(uint64(m.ID))
	w.uint(m.Start)
	w.uint(m.End)
	w.uint(m.Bias)
	w.string(m.Path)
	w.string(m.BuildID)
	w.end()
}

// Method appends m.
func (w *Writer) Method(m *Method) {
	w.begin(TypeMethod)
	w.uint(uint64(m.ID))
	w.uint(m.FunctionID)
	w.string(m.Name)
	w.string(m.Module)
	w.end()
}

// Line appends m.
func (w *Writer) Line(m *Line) {
	w.begin(TypeLine)
	w.uint(m.Addr)
	w.string(m.File)
	w.uint(uint64(m.Line))
	w.end()
}

// Thread appends m.
func (w *Writer) Thread(m *Thread) {
	w.begin(TypeThread)
	w.uint(m.TID)
	w.string(m.Name)
	w.end()
}

// Usage appends m.
func (w *Writer) Usage(m *Usage) {
	w.begin(TypeUsage)
	w.uint(m.TID)
	w.uint(m.CPUNanos)
	w.uint(m.KernelNanos)
	w.uint(uint64(m.Cause))
	w.end()
}

// bounded drops frames beyond MaxFrames. It then sets gap to GapCut, unless the stack
// already has a gap.
func bounded(frames []Frame, gap uint8) ([]Frame, uint8) {
	if len(frames) <= MaxFrames {
		return frames, gap
	}
	if gap == 0 {
		gap = GapCut
	}
	return frames[:MaxFrames], gap
}

// Sample appends m. It drops frames beyond MaxFrames and then marks the sample with
// GapCut, unless the sample already has a gap.
func (w *Writer) Sample(m *Sample) {
	frames, gap := bounded(m.Frames, m.Gap)
	w.begin(TypeSample)
	w.uint(m.TID)
	w.uint(uint64(m.TimeUnixNano))
	w.uint(m.WallNanos)
	w.uint(m.CPUNanos)
	w.uint(uint64(m.Verdict))
	w.uint(uint64(m.HRESULT))
	w.uint(uint64(gap))
	w.frames(frames)
	if m.Activity != (Activity{}) {
		w.buf = append(append(w.buf, m.Activity.Trace[:]...), m.Activity.Span[:]...)
	}
	w.end()
}

// Event appends m, cut as a Sample is.
func (w *Writer) Event(m *Event) {
	frames, gap := bounded(m.Frames, m.Gap)
	w.begin(TypeEvent)
	w.uint(m.TID)
	w.uint(uint64(m.TimeUnixNano))
	for _, v := range [...]uint64{uint64(m.Kind), uint64(m.Flags), m.Nanos, m.Bytes, m.Owner, m.Lock} {
		w.uint(v)
	}
	w.string(m.Name)
	w.string(m.Text)
	w.uint(uint64(gap))
	w.frames(frames)
	w.end()
}

// Dropped appends m.
func (w *Writer) Dropped(m *Dropped) {
	w.begin(TypeDropped)
	w.uint(uint64(m.Kind))
	w.string(m.Name)
	w.uint(m.Count)
	w.uint(m.Bytes)
	w.end()
}

// frames appends a count and the frames. Each IP is stored as the difference to the IP
// before it: two to four bytes if both are in one module.
func (w *Writer) frames(frames []Frame) {
	w.uint(uint64(len(frames)))
	prev := uint64(0)
	for i := range frames {
		f := &frames[i]
		w.buf = append(w.buf, byte(f.Kind), byte(f.Trust), f.Gap, f.Flags)
		w.uint(uint64(f.Module))
		w.uint(uint64(f.Method))
		w.buf = binary.AppendVarint(w.buf, int64(f.IP-prev))
		prev = f.IP
	}
}

// Stats appends a counter.
func (w *Writer) Stats(key string, value uint64) {
	w.begin(TypeStats)
	w.string(key)
	w.uint(value)
	w.end()
}

// Counter appends a counter if its value differs from the last one that Counter appended, whatever Stats or
// Reset did since. Readers keep the last value of each counter. Counter may allocate.
func (w *Writer) Counter(key string, value uint64) {
	if last, ok := w.sent[key]; ok && last == value {
		return
	}
	if w.sent == nil {
		w.sent = map[string]uint64{}
	}
	w.sent[key] = value
	w.Stats(key, value)
}

// Note appends a line for the user.
func (w *Writer) Note(text string) { w.text(TypeNote, text) }

// Bye appends the end of the stream.
func (w *Writer) Bye(reason string) { w.text(TypeBye, reason) }

// GapName appends the name of a gap code.
func (w *Writer) GapName(code uint8, name string) {
	w.begin(TypeGapName)
	w.uint(uint64(code))
	w.string(name)
	w.end()
}

func (w *Writer) text(t Type, s string) {
	w.begin(t)
	w.string(s)
	w.end()
}

func (w *Writer) begin(t Type) {
	w.buf = append(w.buf, byte(t), 0, 0, 0)
	w.mark = len(w.buf)
}

// end fills in the length. The limits on strings and frames keep every payload
// below MaxPayload: the longest is MaxFrames frames of at most 24 bytes each.
func (w *Writer) end() {
	n := len(w.buf) - w.mark
	l := w.buf[w.mark-lengthBytes : w.mark]
	l[0] = byte(n) | 0x80
	l[1] = byte(n>>7) | 0x80
	l[2] = byte(n>>14) & 0x7f
}

func (w *Writer) uint(v uint64) { w.buf = binary.AppendUvarint(w.buf, v) }

func (w *Writer) string(s string) {
	if len(s) > MaxString {
		s = s[:MaxString]
	}
	w.uint(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

// Message appends a message of any type.
func (w *Writer) Message(m Message) {
	switch m := m.(type) {
	case *Hello:
		w.Hello(m)
	case *Module:
		w.Module(m)
	case *Method:
		w.Method(m)
	case *Line:
		w.Line(m)
	case *Thread:
		w.Thread(m)
	case *GapName:
		w.GapName(m.Code, m.Name)
	case *Sample:
		w.Sample(m)
	case *Event:
		w.Event(m)
	case *Usage:
		w.Usage(m)
	case *Dropped:
		w.Dropped(m)
	case *Stats:
		w.Stats(m.Key, m.Value)
	case *Note:
		w.Note(m.Text)
	case *Bye:
		w.Bye(m.Reason)
	}
}
