// Package nettracefile writes .nettrace traces for tests, by the format's
// documents and without the reader's code: versions 1 to 3 (netperf), 4, 5 (tags), and 6,
// headers compressed or plain, pointers of four or eight bytes.
//
// Sources: microsoft/perfview src/TraceEvent/EventPipe/NetTraceFormat_v5.md,
// NetTraceFormat.md, and NetPerfFormat.md.
package nettracefile

import (
	"bytes"
	"encoding/binary"
)

// Options select the form of the format.
type Options struct {
	Version     int    // 1 to 6; 0 = 4
	PointerSize int    // 0 = 8
	Plain       bool   // headers of events are not compressed
	Frequency   uint64 // 0 = 1e9
	PID         uint32
	Ticks       uint64 // the clock at the start
}

// Event is an event to write.
type Event struct {
	Meta            uint32
	Seq             uint32
	Thread, Capture uint64 // Capture 0 = Thread
	Proc, Stack     uint32
	Time            uint64
	Activity        [16]byte
	Related         [16]byte
	Sorted          bool
	Payload         []byte
}

// Meta is a kind of events to describe.
type Meta struct {
	ID                   uint32
	Provider             string
	Event                uint32
	Name                 string
	Keywords             uint64
	Version, Level       uint32
	Opcode               uint8    // version 5 and 6
	Fields               []string // each of type Int32
	ExtraTag, ExtraField bool     // things a reader must step over
}

// ThreadSeq is a thread's counter.
type ThreadSeq struct {
	Thread uint64
	Seq    uint32
}

// Writer collects a trace.
type Writer struct {
	Options
	out    bytes.Buffer
	stacks map[uint32][]byte // of versions 1 to 3, by number
	offset map[uint32]uint32 // of descriptions of versions 1 and 2, by number
}

// New begins a trace: header and description.
func New(o Options) *Writer {
	if o.Version == 0 {
		o.Version = 4
	}
	if o.PointerSize == 0 {
		o.PointerSize = 8
	}
	if o.Frequency == 0 {
		o.Frequency = 1e9
	}
	w := &Writer{Options: o, stacks: map[uint32][]byte{}, offset: map[uint32]uint32{}}
	if o.Version >= 4 {
		w.out.WriteString("Nettrace")
	}
	var b enc
	for _, v := range []uint16{2026, 11, 6, 21, 22, 23, 24, 250} {
		b.u16(v)
	}
	b.u64(o.Ticks)
	b.u64(o.Frequency)
	if o.Version < 3 {
		return w.beginNetperf(b)
	}
	b.u32(uint32(o.PointerSize))
	if o.Version >= 6 {
		w.raw(0, 6, 0)
		b.u32(2)
		b.str("ProcessId")
		b.str(itoa(o.PID))
		b.str("Colour")
		b.str("blue")
		w.block6(1, b)
		return w
	}
	w.raw(20)
	w.out.WriteString("!FastSerialization.1")
	b.u32(o.PID)
	b.u32(2)
	b.u32(0)
	w.begin("Trace", uint32(o.Version), 4)
	w.out.Write(b)
	w.out.WriteByte(6)
	return w
}

// Bytes is the trace so far.
func (w *Writer) Bytes() []byte { return w.out.Bytes() }

// Len is how long it is.
func (w *Writer) Len() int { return w.out.Len() }

// Reset forgets the bytes, for traces written in pieces whose length is a
// multiple of four.
func (w *Writer) Reset() { w.out.Reset() }

// End writes the end mark.
func (w *Writer) End() *Writer {
	switch {
	case w.Version >= 6:
		w.raw(0)
	case w.Version < 3:
		end := uint32(w.out.Len())
		w.out.WriteByte(6)
		w.raw(1, end, end+1, end+9)
	default:
		w.out.WriteByte(1)
	}
	return w
}

// Raw writes bytes as they are.
func (w *Writer) Raw(b ...byte) *Writer {
	w.out.Write(b)
	return w
}

func (w *Writer) raw(v ...uint32) {
	for _, x := range v {
		w.out.Write(binary.LittleEndian.AppendUint32(nil, x))
	}
}

func (w *Writer) begin(name string, version, reader uint32) {
	if w.Version < 4 {
		w.out.Write([]byte{4, 4, 1})
	} else {
		w.out.Write([]byte{5, 5, 1})
	}
	w.raw(version, reader, uint32(len(name)))
	w.out.WriteString(name)
	w.out.WriteByte(6)
}

// Block writes a block of version 4 with any content.
func (w *Writer) Block(name string, content []byte) *Writer {
	w.begin(name, 2, 2)
	w.raw(uint32(len(content)))
	for w.out.Len()%4 != 0 {
		w.out.WriteByte(0)
	}
	w.out.Write(content)
	w.out.WriteByte(6)
	return w
}

// Block6 writes a block of version 6 with any content.
func (w *Writer) Block6(kind byte, content []byte) *Writer {
	w.block6(kind, content)
	return w
}

func (w *Writer) block6(kind byte, content []byte) {
	w.raw(uint32(len(content)) | uint32(kind)<<24)
	w.out.Write(content)
}

func (w *Writer) put(name string, kind byte, content []byte) *Writer {
	if w.Version >= 6 {
		return w.Block6(kind, content)
	}
	return w.Block(name, content)
}

// Stacks writes a block of stacks, leaf first.
func (w *Writer) Stacks(first uint32, stacks ...[]uint64) *Writer {
	if w.Version < 4 {
		return w.keepStacks(first, stacks)
	}
	var b enc
	b.u32(first)
	b.u32(uint32(len(stacks)))
	for _, s := range stacks {
		b.u32(uint32(len(s) * w.PointerSize))
		b.addrs(s, w.PointerSize)
	}
	return w.put("StackBlock", 5, b)
}

// Events writes a block of events.
func (w *Writer) Events(events ...Event) *Writer {
	if w.Version < 4 {
		return w.netperf(events)
	}
	return w.put("EventBlock", 2, w.events(events))
}

func (w *Writer) events(events []Event) enc {
	var b enc
	b.u16(24) // longer than readers expect: they skip the rest
	if w.Plain {
		b.u16(0)
	} else {
		b.u16(1)
	}
	lo, hi := ^uint64(0), uint64(0)
	for _, e := range events {
		lo, hi = min(lo, e.Time), max(hi, e.Time)
	}
	b.u64(lo)
	b.u64(hi)
	b.u32(0xdddddddd)
	var last Event
	lastSize := uint32(0)
	for i := range events {
		e := events[i]
		if e.Capture == 0 {
			e.Capture = e.Thread
		}
		if w.Plain {
			w.plain(&b, &e)
		} else {
			w.compressed(&b, &e, &last, &lastSize)
		}
	}
	return b
}

func (w *Writer) plain(b *enc, e *Event) {
	var h enc
	id := e.Meta
	if e.Sorted == (w.Version >= 6) {
		id |= 1 << 31
	}
	h.u32(id)
	h.u32(e.Seq)
	h.u64(e.Thread)
	h.u64(e.Capture)
	h.u32(e.Proc)
	h.u32(e.Stack)
	h.u64(e.Time)
	if w.Version >= 6 {
		h.u32(0)
	} else {
		h = append(append(h, e.Activity[:]...), e.Related[:]...)
	}
	h.u32(uint32(len(e.Payload)))
	h = append(h, e.Payload...)
	for w.Version < 6 && len(h)%4 != 0 {
		h = append(h, 0)
	}
	b.u32(uint32(len(h)))
	*b = append(*b, h...)
}

// compressed writes the differences from the last event.
func (w *Writer) compressed(b *enc, e, last *Event, lastSize *uint32) {
	var flags byte
	var f enc
	if e.Meta != last.Meta {
		flags |= 1
		f.v(uint64(e.Meta))
	}
	step := uint32(0)
	if e.Meta != 0 || w.Version >= 6 {
		step = 1
	}
	if e.Seq != last.Seq+step || e.Capture != last.Capture || e.Proc != last.Proc {
		flags |= 2
		f.v(uint64(e.Seq - step - last.Seq))
		f.v(e.Capture)
		f.v(uint64(e.Proc))
	}
	if e.Thread != last.Thread {
		flags |= 4
		f.v(e.Thread)
	}
	if e.Stack != last.Stack {
		flags |= 8
		f.v(uint64(e.Stack))
	}
	f.v(e.Time - last.Time)
	if w.Version < 6 && e.Activity != last.Activity {
		flags |= 16
		f = append(f, e.Activity[:]...)
	}
	if w.Version < 6 && e.Related != last.Related {
		flags |= 32
		f = append(f, e.Related[:]...)
	}
	if e.Sorted {
		flags |= 64
	}
	if n := uint32(len(e.Payload)); n != *lastSize {
		flags |= 128
		f.v(uint64(n))
		*lastSize = n
	}
	*b = append(append(append(*b, flags), f...), e.Payload...)
	*last = *e
}

// Point writes a sequence point.
func (w *Writer) Point(time uint64, threads ...ThreadSeq) *Writer {
	return w.PointFlags(time, 0, threads...)
}

// PointFlags is Point with the flags of version 6.
func (w *Writer) PointFlags(time uint64, flags uint32, threads ...ThreadSeq) *Writer {
	var b enc
	b.u64(time)
	if w.Version >= 6 {
		b.u32(flags)
	}
	b.u32(uint32(len(threads)))
	for _, t := range threads {
		if w.Version >= 6 {
			b.v(t.Thread)
			b.v(uint64(t.Seq))
		} else {
			b.u64(t.Thread)
			b.u32(t.Seq)
		}
	}
	return w.put("SPBlock", 4, b)
}

// Thread6 is a row of version 6's table of threads.
type Thread6 struct {
	Index, PID, TID uint64
	Name            string
}

// Threads writes a block of threads, of version 6.
func (w *Writer) Threads(threads ...Thread6) *Writer {
	var b enc
	for _, t := range threads {
		var r enc
		r.v(t.Index)
		r = append(r, 1)
		r.str(t.Name)
		r = append(r, 4)
		r.str("k")
		r.str("v")
		r = append(r, 2)
		r.v(t.PID)
		r = append(r, 3)
		r.v(t.TID)
		b.u16(uint16(len(r)))
		b = append(b, r...)
	}
	return w.Block6(6, b)
}

// Remove writes threads that ended, of version 6.
func (w *Writer) Remove(threads ...ThreadSeq) *Writer {
	var b enc
	for _, t := range threads {
		b.v(t.Thread)
		b.v(uint64(t.Seq))
	}
	return w.Block6(7, b)
}
