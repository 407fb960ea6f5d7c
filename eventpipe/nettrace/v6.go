package nettrace

import (
	"fmt"
	"io"
	"strconv"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// Kinds of blocks of version 6.
const (
	blockEnd = iota
	blockTrace
	blockEvent
	blockMetadata
	blockPoint
	blockStacks
	blockThreads
	blockRemoved
	blockLabels
)

// Flags of a sequence point.
const (
	flushThreads  = 1
	flushMetadata = 2
)

// framingV6 reads the blocks of version 6. Each begins with a word with its size and kind, and
// blocks have no padding.
type framingV6 struct{}

func (r *Reader) startV6() error {
	major, err := r.src.u32("the trace's header")
	if err != nil {
		return err
	}
	if _, err = r.src.u32("the trace's header"); err != nil {
		return err
	}
	switch {
	case major > 6:
		return &Error{Reason: TooNew, Offset: r.src.off - 8,
			What: fmt.Sprintf("its format is version %d", major)}
	case major < 6:
		return &Error{Reason: NotNettrace, Offset: r.src.off - 8,
			What: fmt.Sprintf("its header says version %d", major)}
	}
	r.frame = framingV6{}
	return nil
}

func (framingV6) next(r *Reader) error {
	at := r.src.off
	word, err := r.src.u32("a block")
	if err != nil {
		if err.Reason == Truncated && err.Offset == at {
			err.Reason, err.What = NoEnd, "the last events may be missing"
		}
		return err
	}
	kind := word >> 24
	if kind != blockTrace && kind != blockEnd && !r.started {
		return &Error{Reason: BadFraming, Offset: at, What: "a block before the trace's description"}
	}
	r.base = r.src.off
	r.data, r.cut = r.src.block(r.data, int(word&0xffffff), "a block")
	r.counts.Blocks++
	if kind == blockEnd && r.cut == nil {
		r.trailing()
		return io.EOF
	}
	return r.blockV6(kind, at)
}

func (r *Reader) blockV6(kind uint32, at int64) error {
	switch kind {
	case blockTrace:
		if r.cut != nil {
			return r.cut
		}
		if err := r.traceV6(); err != nil {
			return err
		}
	case blockEvent:
		r.eventBlock()
	case blockMetadata:
		r.metadataV6()
	case blockPoint:
		r.pointV6()
	case blockStacks:
		r.stackBlock()
	case blockThreads:
		r.threadBlock()
	case blockRemoved:
		r.removeBlock()
	case blockEnd, blockLabels:
	default:
		r.fault(UnknownBlock, at, "kind "+strconv.Itoa(int(kind)))
	}
	return nil
}

func (r *Reader) traceV6() *Error {
	b := buf.At(r.data, 0)
	t := Trace{Version: 6, Start: systemTime(&b), Ticks: b.U64(),
		Frequency: b.U64(), PointerSize: int(b.U32())}
	n := b.U32()
	for i := uint32(0); i < n && b.OK(); i++ {
		key, value := string(short(&b)), string(short(&b))
		number, err := strconv.Atoi(value)
		if err != nil {
			continue
		}
		switch key {
		case "ProcessId":
			t.ProcessID = number
		case "HardwareThreadCount":
			t.Processors = number
		case "ExpectedCPUSamplingRate":
			t.SamplingRate = number
		}
	}
	if !b.OK() {
		return &Error{Reason: BadTrace, Offset: r.base + int64(b.Pos())}
	}
	return r.start(t, r.base)
}

// short reads a string with a length prefix.
func short(b *buf.Reader) []byte { return b.Bytes(uint64(u32(b))) }

// metadataV6 reads rows, each with a size prefix.
func (r *Reader) metadataV6() {
	r.events.active = false
	b := buf.At(r.data, 0)
	b.Skip(uint64(b.U16()))
	for b.OK() && b.Len() > 0 {
		at := r.base + int64(b.Pos())
		row := b.Bytes(uint64(b.U16()))
		if !b.OK() {
			break
		}
		if m, ok := r.describeV6(row); ok {
			r.define(m, at)
		} else {
			r.fault(BadMetadata, at, "")
		}
	}
	if !b.OK() {
		r.abandon(BadMetadata, r.base+int64(b.Pos()))
	}
}

func (r *Reader) describeV6(row []byte) (*Metadata, bool) {
	b := buf.At(row, 0)
	m := &Metadata{ID: u32(&b), Provider: r.text(short(&b)), EventID: u32(&b), Name: r.text(short(&b))}
	m.Fields = int(b.U16())
	for i := 0; i < m.Fields && b.OK(); i++ {
		b.Skip(uint64(b.U16()))
	}
	if !b.OK() || m.ID == 0 {
		return nil, false
	}
	if b.Len() >= 2 {
		m.readOptions(buf.At(b.Bytes(uint64(b.U16())), 0))
	}
	return m, true
}

// Kinds of optional parts of a description.
const (
	optionOpcode = iota + 1
	_            // of version 5
	optionKeywords
	optionTemplate
	optionDescription
	optionKeyValue
	optionGUID
	optionLevel
	optionVersion
)

func (m *Metadata) readOptions(b buf.Reader) {
	for b.OK() && b.Len() > 0 {
		switch b.U8() {
		case optionOpcode:
			m.Opcode = b.U8()
		case optionKeywords:
			m.Keywords = b.U64()
		case optionTemplate, optionDescription:
			short(&b)
		case optionKeyValue:
			short(&b)
			short(&b)
		case optionGUID:
			b.Skip(16)
		case optionLevel:
			m.Level = uint32(b.U8())
		case optionVersion:
			m.Version = uint32(b.U8())
		default:
			return // the size is unknown
		}
	}
}

// threadInfo is a row of the table of threads.
type threadInfo struct {
	process, thread uint64
	known           bool   // the thread has a system id
	counter         uint64 // key of its counter
}

// threadIDs identifies a thread by its system ids.
type threadIDs struct{ process, thread uint64 }

// ownCounter marks counters of threads with system ids. Such a counter continues when the
// thread gets another index, and restarts when another thread reuses the ids. The counter key
// of any other thread is its index, and also that of a thread's second index: sequence numbers belong to
// the index.
const ownCounter = 1 << 63

// idCounter is the counter of a thread with system ids.
type idCounter struct{ key, index uint64 }

func (r *Reader) counterOf(index uint64, t *threadInfo) uint64 {
	own := index &^ ownCounter
	if !t.known || r.threads.find(own) != nil {
		return own
	}
	ids := threadIDs{t.process, t.thread}
	c, ok := r.counters[ids]
	switch other, live := r.table[c.index]; {
	case ok && live && c.index != index && other.counter == c.key:
		return own // two indices of one thread, which count apart
	case !ok:
		if len(r.counters) >= maxThreads {
			clear(r.counters)
			r.threads.forget()
			r.threads.forgot = true
		}
		c.key = ownCounter | uint64(len(r.counters))
	}
	c.index = index
	r.counters[ids] = c
	return c.key
}

// Kinds of the parts of a row in the table of threads.
const (
	threadName = iota + 1
	threadProcess
	threadID
	threadKeyValue
)

func (r *Reader) threadBlock() {
	r.events.active = false
	b := buf.At(r.data, 0)
	for b.OK() && b.Len() > 0 {
		row := buf.At(b.Bytes(uint64(b.U16())), 0)
		if !b.OK() {
			break
		}
		index, info := row.ULEB(), readThread(&row)
		switch {
		case !row.OK():
			r.fault(BadThreads, r.base+int64(b.Pos()), "")
		case len(r.table) >= maxThreads:
			r.fault(TooMuch, r.base+int64(b.Pos()), "threads")
			return
		default:
			info.counter = r.counterOf(index, &info)
			r.table[index] = info
		}
	}
	if !b.OK() {
		r.abandon(BadThreads, r.base+int64(b.Pos()))
	}
}

func readThread(b *buf.Reader) (t threadInfo) {
	for b.OK() && b.Len() > 0 {
		switch b.U8() {
		case threadName:
			short(b)
		case threadProcess:
			t.process = b.ULEB()
		case threadID:
			t.thread, t.known = b.ULEB(), true
		case threadKeyValue:
			short(b)
			short(b)
		default:
			return
		}
	}
	return
}

// nameThreads replaces indices by system ids. A thread without a system id keeps its index.
func (r *Reader) nameThreads(e *Event, at int64) {
	t, ok := r.table[e.Thread]
	if !ok {
		r.fault(NoThread, at, "")
	}
	if t.known {
		e.Thread = t.thread
	}
	by := r.threadOf(e.CaptureThread)
	e.Process, e.CaptureThread = by.process, by.thread
}

// counter returns the key of the counter for an index.
func (r *Reader) counter(index uint64) uint64 {
	if t, ok := r.table[index]; ok {
		return t.counter
	}
	return index &^ ownCounter
}

// threadOf returns the ids of a thread. A thread without a system id keeps its index.
func (r *Reader) threadOf(index uint64) threadIDs {
	t := r.table[index]
	if !t.known {
		t.thread = index
	}
	return threadIDs{t.process, t.thread}
}

// removeBlock reads ended threads: index and last number.
func (r *Reader) removeBlock() {
	b := buf.At(r.data, 0)
	r.beginPoint(0, true)
	for b.OK() && b.Len() > 0 {
		index, seq := b.ULEB(), u32(&b)
		if !b.OK() {
			break
		}
		key := r.counter(index)
		r.reached(key, r.threadOf(index), seq)
		if key&ownCounter == 0 {
			r.threads.remove(key)
		}
		delete(r.table, index)
	}
	r.endPoint(&b)
	r.counts.Points-- // this is not a sequence point
}

func (r *Reader) pointV6() {
	b := buf.At(r.data, 0)
	r.beginPoint(b.U64(), false)
	flags, n := b.U32(), b.U32()
	for i := uint32(0); i < n && b.OK(); i++ {
		index, seq := b.ULEB(), u32(&b)
		if b.OK() {
			r.reached(r.counter(index), r.threadOf(index), seq)
		}
	}
	r.endPoint(&b)
	r.stacks.clear()
	if flags&flushThreads != 0 {
		clear(r.table) // the threads continue, and so do their counters
	}
	if flags&flushMetadata != 0 {
		clear(r.metadata)
		r.recent = nil
	}
}
