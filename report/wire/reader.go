package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/seedwalk/seedwalk/unwind"
)

// FormatError describes a damaged stream. Offset is the position of the message's
// payload in the stream, in bytes, or of its length if the length is wrong.
type FormatError struct {
	Message Type
	Field   string
	Offset  int64
	Value   uint64
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("wire: message %s (%d) at offset %d: bad %s %#x", e.Message,
		uint8(e.Message), e.Offset, e.Field, e.Value)
}

// VersionError means that the stream is newer than this reader.
type VersionError struct{ Got uint64 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("wire: stream version %d, this tool reads up to %d: use the tool and the profiler library of one build", e.Got, uint64(Version))
}

// Reader reads messages. It is not safe for concurrent use.
type Reader struct {
	r       *bufio.Reader
	payload []byte
	offset  int64
	err     error
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 1<<16)} }

// Buffered returns how many bytes of the next messages have been read already.
func (r *Reader) Buffered() int { return r.r.Buffered() }

// Next returns the next message. The caller may keep it. Next returns io.EOF at the end,
// io.ErrUnexpectedEOF if the stream ends inside a message, and a *FormatError or
// *VersionError if the stream is invalid. After an error, Next returns the same error again.
func (r *Reader) Next() (Message, error) {
	for r.err == nil {
		t, p, err := r.read()
		if err != nil {
			r.err = err
			break
		}
		d := decoder{buf: p, typ: t, offset: r.offset - int64(len(p))}
		m := d.message()
		if m == nil {
			continue // of a type that a later release may send
		}
		if d.err != nil {
			r.err = d.err
			break
		}
		if h, ok := m.(*Hello); ok && h.Version > Version {
			r.err = &VersionError{Got: h.Version}
			break
		}
		return m, nil
	}
	return nil, r.err
}

// read returns one message's type and payload; the payload is valid until the
// next call.
func (r *Reader) read() (Type, []byte, error) {
	b, err := r.r.ReadByte()
	if err != nil {
		return 0, nil, err // io.EOF between messages is a normal end
	}
	r.offset++
	t := Type(b)
	n, err := r.length(t)
	if err != nil {
		return t, nil, err
	}
	if err := r.fill(n); err != nil {
		return t, nil, err
	}
	r.offset += int64(n)
	return t, r.payload, nil
}

// length reads a payload's length, at most MaxPayload and so at most three
// bytes long.
func (r *Reader) length(t Type) (int, error) {
	v := uint64(0)
	for i := 0; i < lengthBytes; i++ {
		b, err := r.r.ReadByte()
		if err != nil {
			return 0, noEOF(err)
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			r.offset += int64(i + 1)
			return int(v), nil
		}
	}
	return 0, &FormatError{Message: t, Field: "payload length", Offset: r.offset, Value: v}
}

// fill reads n payload bytes, growing the buffer only as bytes arrive, so that
// a wrong length costs no memory.
func (r *Reader) fill(n int) error {
	const step = 1 << 16
	r.payload = r.payload[:0]
	for len(r.payload) < n {
		k := min(n-len(r.payload), step)
		at := len(r.payload)
		r.payload = append(r.payload, make([]byte, k)...)
		if _, err := io.ReadFull(r.r, r.payload[at:]); err != nil {
			return noEOF(err)
		}
	}
	return nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Parse reads the message at the start of b and returns its size in bytes. m is nil if the type
// is unknown. The error is io.ErrUnexpectedEOF if b ends inside the message, or a *FormatError
// whose offset is relative to b.
func Parse(b []byte) (m Message, size int, err error) {
	if len(b) == 0 {
		return nil, 0, io.ErrUnexpectedEOF
	}
	t := Type(b[0])
	n, k := binary.Uvarint(b[1:min(len(b), 1+lengthBytes)])
	switch {
	case k <= 0 && len(b) <= lengthBytes:
		return nil, 0, io.ErrUnexpectedEOF
	case k <= 0:
		return nil, 0, &FormatError{Message: t, Field: "payload length", Offset: 1, Value: n}
	}
	begin := 1 + k
	if n > uint64(len(b)-begin) {
		return nil, 0, io.ErrUnexpectedEOF
	}
	size = begin + int(n)
	d := decoder{buf: b[begin:size], typ: t, offset: int64(begin)}
	m = d.message()
	if m == nil {
		return nil, size, nil
	}
	if d.err != nil {
		return nil, size, d.err
	}
	return m, size, nil
}

// decoder reads one payload. After an error, every later read returns zero.
type decoder struct {
	buf    []byte
	typ    Type
	offset int64
	err    error
}

// message decodes the payload, or returns nil for an unknown type.
func (d *decoder) message() Message {
	switch d.typ {
	case TypeHello:
		return &Hello{Version: d.uint("Version"), PID: d.uint("PID"),
			Arch: d.string("Arch"), Runtime: d.string("Runtime"),
			StartUnixNano: int64(d.uint("StartUnixNano")), RateMilliHz: d.uint("RateMilliHz")}
	case TypeModule:
		return &Module{ID: d.uint32("ID"), Start: d.uint("Start"), End: d.uint("End"), Bias: d.uint("Bias"),
			Path: d.string("Path"), BuildID: d.string("BuildID")}
	case TypeMethod:
		return &Method{ID: d.uint32("ID"), FunctionID: d.uint("FunctionID"),
			Name: d.string("Name"), Module: d.string("Module")}
	case TypeLine:
		return &Line{Addr: d.uint("Addr"), File: d.string("File"), Line: d.uint32("Line")}
	case TypeUsage:
		return &Usage{TID: d.uint("TID"), CPUNanos: d.uint("CPUNanos"),
			KernelNanos: d.uint("KernelNanos"), Cause: d.uint8("Cause")}
	case TypeDropped:
		return &Dropped{Kind: d.uint8("Kind"), Name: d.string("Name"),
			Count: d.uint("Count"), Bytes: d.uint("Bytes")}
	case TypeThread:
		return &Thread{TID: d.uint("TID"), Name: d.string("Name")}
	case TypeSample:
		return d.sample()
	case TypeStats:
		return &Stats{Key: d.string("Key"), Value: d.uint("Value")}
	case TypeNote:
		return &Note{Text: d.string("Text")}
	case TypeBye:
		return &Bye{Reason: d.string("Reason")}
	case TypeGapName:
		return &GapName{Code: d.uint8("Code"), Name: d.string("Name")}
	case TypeEvent:
		return d.event()
	}
	return nil
}

func (d *decoder) event() *Event {
	return &Event{TID: d.uint("TID"), TimeUnixNano: int64(d.uint("TimeUnixNano")), Kind: d.uint8("Kind"),
		Flags: d.uint8("Flags"), Nanos: d.uint("Nanos"),
		Bytes: d.uint("Bytes"), Owner: d.uint("Owner"), Lock: d.uint("Lock"), Name: d.string("Name"),
		Text: d.string("Text"), Gap: d.uint8("Gap"), Frames: d.frames()}
}

func (d *decoder) sample() *Sample {
	s := &Sample{TID: d.uint("TID"), TimeUnixNano: int64(d.uint("TimeUnixNano")),
		WallNanos: d.uint("WallNanos"),
		CPUNanos:  d.uint("CPUNanos"), Verdict: d.uint32("Verdict"), HRESULT: d.uint32("HRESULT"),
		Gap: d.uint8("Gap"), Frames: d.frames()}
	if a := &s.Activity; len(d.buf) >= len(a.Trace)+len(a.Span) {
		d.buf = d.buf[copy(a.Trace[:], d.buf):]
		d.buf = d.buf[copy(a.Span[:], d.buf):]
	}
	return s
}

// minFrame is the size of the smallest frame: four bytes and three one-byte integers.
const minFrame = 7

func (d *decoder) frames() []Frame {
	n := d.uint("frame count")
	if n > MaxFrames || n > uint64(len(d.buf)/minFrame) {
		d.fail("frame count", n)
		return nil
	}
	if n == 0 {
		return nil
	}
	frames := make([]Frame, n)
	prev := uint64(0)
	for i := range frames {
		f := &frames[i]
		f.Kind, f.Trust = unwind.Kind(d.byte("Kind")), unwind.Trust(d.byte("Trust"))
		f.Gap, f.Flags = d.byte("Gap"), d.byte("Flags")
		f.Module, f.Method = d.uint32("Frame.Module"), d.uint32("Frame.Method")
		prev += uint64(d.int("IP"))
		f.IP = prev
	}
	return frames
}

func (d *decoder) fail(field string, v uint64) {
	if d.err == nil {
		d.err = &FormatError{Message: d.typ, Field: field, Offset: d.offset, Value: v}
	}
	d.buf = nil
}

func (d *decoder) byte(field string) byte {
	if len(d.buf) == 0 {
		d.fail(field, 0)
		return 0
	}
	b := d.buf[0]
	d.buf = d.buf[1:]
	return b
}

func (d *decoder) uint(field string) uint64 {
	v, n := binary.Uvarint(d.buf)
	if n <= 0 {
		d.fail(field, v)
		return 0
	}
	d.buf = d.buf[n:]
	return v
}

func (d *decoder) int(field string) int64 {
	v, n := binary.Varint(d.buf)
	if n <= 0 {
		d.fail(field, uint64(v))
		return 0
	}
	d.buf = d.buf[n:]
	return v
}

func (d *decoder) uint32(field string) uint32 { return uint32(d.atMost(field, 1<<32-1)) }

func (d *decoder) uint8(field string) uint8 { return uint8(d.atMost(field, 255)) }

func (d *decoder) atMost(field string, limit uint64) uint64 {
	v := d.uint(field)
	if v > limit {
		d.fail(field, v)
		return 0
	}
	return v
}

func (d *decoder) string(field string) string {
	n := d.uint(field)
	if n > MaxString || n > uint64(len(d.buf)) {
		d.fail(field, n)
		return ""
	}
	s := string(d.buf[:n])
	d.buf = d.buf[n:]
	return s
}
