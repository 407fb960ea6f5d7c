package nettrace

import (
	"encoding/binary"
	"time"
)

// Trace describes the trace as a whole.
type Trace struct {
	Version      int       // of the format: 1 to 6
	Start        time.Time // in UTC, of Ticks
	Ticks        uint64    // the clock at Start
	Frequency    uint64    // ticks a second
	PointerSize  int       // 4 or 8
	ProcessID    int       // 0 = not in the trace
	Processors   int       // 0 = not in the trace
	SamplingRate int       // expected rate, 0 = not in the trace
}

// Nanos converts a difference of timestamps to nanoseconds without overflow.
func (t *Trace) Nanos(ticks uint64) int64 {
	const second = uint64(time.Second)
	if t.Frequency == second {
		return int64(min(ticks, 1<<63-1))
	}
	whole, rest := ticks/t.Frequency, ticks%t.Frequency
	if whole > (1<<63-1)/second-1 {
		return 1<<63 - 1
	}
	return int64(whole*second + uint64(float64(rest)*float64(second)/float64(t.Frequency)))
}

// Time returns the wall-clock time of a timestamp.
func (t *Trace) Time(timestamp uint64) time.Time {
	if timestamp < t.Ticks {
		return t.Start.Add(-time.Duration(t.Nanos(t.Ticks - timestamp)))
	}
	return t.Start.Add(time.Duration(t.Nanos(timestamp - t.Ticks)))
}

// Metadata describes a kind of event.
type Metadata struct {
	ID       uint32
	Provider string
	EventID  uint32
	Name     string // empty for the runtime's own events
	Keywords uint64
	Version  uint32
	Level    uint32
	Opcode   uint8
	Fields   int // number of described fields
	User     any // data of a consumer for this kind of event
}

// Event is one event. Stack and Payload are valid until the next call of Next.
type Event struct {
	Meta          *Metadata
	Thread        uint64 // the thread the event is about
	CaptureThread uint64 // the thread that wrote it
	Process       uint64 // process of CaptureThread (version 6), else 0
	Sequence      uint32 // of the capture thread
	Lost          uint32 // events of the capture thread that are missing before this one
	Restart       bool   // the capture thread's counter restarted: another thread reuses the id
	Processor     uint32 // often all ones: unknown
	Timestamp     uint64 // ticks: see Trace.Time
	StackID       uint32
	Stack         Stack
	StackLost     bool // the event refers to a missing stack
	Activity      [16]byte
	Related       [16]byte
	Labels        uint32 // version 6: a list of labels, not read
	Sorted        bool   // no later event has an earlier timestamp
	Payload       []byte
	Offset        int64 // of its header in the trace
}

// Stack is a list of instruction addresses, leaf first, in the trace's form.
type Stack struct {
	raw  []byte
	size int // bytes of an address
}

// StackOf wraps addresses in the trace's form: each of size bytes, little endian.
func StackOf(raw []byte, size int) Stack { return Stack{raw, size} }

// Len is the number of addresses.
func (s Stack) Len() int {
	if s.size == 0 {
		return 0
	}
	return len(s.raw) / s.size
}

// At returns address i, leaf first.
func (s Stack) At(i int) uint64 {
	if s.size == 4 {
		return uint64(binary.LittleEndian.Uint32(s.raw[4*i:]))
	}
	return binary.LittleEndian.Uint64(s.raw[8*i:])
}

// Raw returns the stack as bytes. Equal stacks of one trace have equal bytes.
func (s Stack) Raw() []byte { return s.raw }

// Append adds the addresses to out.
func (s Stack) Append(out []uint64) []uint64 {
	for i := range s.Len() {
		out = append(out, s.At(i))
	}
	return out
}

// Point is a sequence point: events before it in the trace are older than
// Timestamp, later ones are not. It is valid until the next call of Next.
type Point struct {
	Timestamp uint64
	Removed   bool   // not a sequence point: threads that ended; Timestamp is 0
	Lost      []Lost // threads with a counter ahead of the events that were read
	Offset    int64
}

// Lost is a thread with events that are missing in the trace.
type Lost struct {
	Process, Thread uint64
	Count           uint32
}

// Counts holds the totals so far.
type Counts struct {
	Bytes, Blocks, Events, Metadata, Stacks, Points int64
	Lost                                            int64 // missing events, according to the counters
	Restarts                                        int64 // reused thread ids
	LostStacks                                      int64 // events with a missing stack
}
