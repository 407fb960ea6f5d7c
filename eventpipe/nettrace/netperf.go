package nettrace

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// Versions 1 to 3 ("netperf", .NET Core 2.0 to the previews of 3.0). Sources: microsoft/perfview
// src/TraceEvent/EventPipe/NetPerfFormat.md, and its EventPipeEventSource.cs of 2018, which read
// all of them. Version 3 has blocks of events. Versions 1 and 2 are one object, in which the
// events follow each other. An event has its stack behind its payload. There are no counters, so
// lost events cannot be noticed, and the events are sorted by time.

// tagBegin begins an object of these versions, and its type.
const tagBegin = 4

// netperfFile is the type of the object of versions 1 and 2.
const netperfFile = "Microsoft.DotNet.Runtime.EventPipeFile"

// leastNetperf is the size of an event without payload and stack, without the size itself.
const leastNetperf = 56

// framingNetperf reads the events of versions 1 and 2 one by one.
type framingNetperf struct{}

func (framingNetperf) next(r *Reader) error {
	if r.netperfEnd() {
		return io.EOF
	}
	head, err := r.src.r.Peek(4)
	if len(head) < 4 {
		e := r.src.fail(err, "an event")
		if e.Offset += int64(len(head)); e.Reason == Truncated && len(head) == 0 {
			e.Reason = NoEnd
		}
		return e
	}
	size := binary.LittleEndian.Uint32(head)
	if size < leastNetperf || size > MaxBlock {
		return &Error{Reason: BadSize, Offset: r.src.off, What: fmt.Sprintf("%d bytes of an event", size)}
	}
	r.base = r.src.off
	r.data, r.cut = nil, nil
	data, cut := r.src.block(r.data, 4+int(size), "an event")
	if r.data = data; cut != nil {
		r.cut = cut
	}
	r.eventBlock()
	return nil
}

// netperfEnd reads the data after the last event. These are the end of the object, a table with
// the offset of this end, and two offsets of the table.
func (r *Reader) netperfEnd() bool {
	const size = 17
	head, _ := r.src.r.Peek(size + 1)
	if len(head) != size || head[0] != tagEnd || binary.LittleEndian.Uint32(head[5:]) != uint32(r.src.off) {
		return false
	}
	r.src.r.Discard(size)
	r.src.off += size
	return true
}

// nextNetperf reads events of the current block up to one that is not a description. It returns
// false without one.
func (r *Reader) nextNetperf() bool {
	for r.events.left() {
		in := &r.events.in
		at := r.base + int64(in.Pos())
		b := buf.At(in.Bytes(uint64(in.U32())), 0)
		h := &r.events.head
		h.metadata, h.thread, h.timestamp = b.U32(), uint64(b.U32()), b.U64()
		copy(h.activity[:], b.Bytes(16))
		copy(h.related[:], b.Bytes(16))
		h.capture, h.sorted = h.thread, true
		payload := b.Bytes(uint64(b.U32()))
		stack := b.Bytes(uint64(b.U32()))
		if !in.OK() || !b.OK() {
			r.abandon(BadEvent, at)
			return false
		}
		if h.metadata == 0 {
			r.describeNetperf(payload, at)
			continue
		}
		r.deliver(payload, at)
		r.inlineStack(stack, at)
		return true
	}
	return false
}

// inlineStack gives the current event the stack behind it.
func (r *Reader) inlineStack(raw []byte, at int64) {
	switch size := r.trace.PointerSize; {
	case len(raw)%size != 0:
		r.fault(BadStacks, at, "a stack's size is not a multiple of a pointer's")
		r.event.StackLost = true
		r.counts.LostStacks++
	case len(raw) > 0:
		r.counts.Stacks++
		r.event.Stack = Stack{raw, size}
	}
}

// describeNetperf reads a description. In versions 1 and 2, its offset is its number. Everything
// except the ids is optional.
func (r *Reader) describeNetperf(payload []byte, at int64) {
	if r.trace.Version == 3 {
		if m, ok := r.describe(payload); ok {
			r.define(m, at)
		} else {
			r.fault(BadMetadata, at, "")
		}
		return
	}
	b := buf.At(payload, 0)
	m := &Metadata{ID: uint32(at)}
	if r.trace.Version == 1 {
		m.Provider = providerOf(b.Bytes(16))
	} else {
		m.Provider = r.wide(&b)
	}
	m.EventID, m.Version = b.U32(), b.U32()
	if !b.OK() {
		r.fault(BadMetadata, at, "")
		return
	}
	if b.U32() > 0 {
		b.U32() // the id again
		m.Name, m.Keywords = r.wide(&b), b.U64()
		b.U32() // the version again
		m.Level, m.Fields = b.U32(), int(b.U32())
	}
	r.define(m, at)
}

// providers names the providers that version 1 gives by their GUIDs.
var providers = map[string]string{
	"e13c0d23-ccbc-4e12-931b-d9cc2eee27e4": "Microsoft-Windows-DotNETRuntime",
	"a669021c-c450-4609-a035-5af59af4df18": "Microsoft-Windows-DotNETRuntimeRundown",
	"763fd754-7086-4dfe-95eb-c01a46faf4ca": "Microsoft-Windows-DotNETRuntimePrivate",
	"3c530d44-97ae-513a-1e6d-783e8f8e03a9": "Microsoft-DotNETCore-SampleProfiler",
	"2e5dba47-a3d2-4d16-8ee0-6671ffdcd7b5": "System.Threading.Tasks.TplEventSource",
}

// providerOf returns the name of a provider, or the text of its GUID.
func providerOf(id []byte) string {
	b := buf.At(id, 0)
	text := fmt.Sprintf("%08x-%04x-%04x-", b.U32(), b.U16(), b.U16())
	text += fmt.Sprintf("%x-%x", b.Bytes(2), b.Bytes(6))
	if name, ok := providers[text]; ok {
		return name
	}
	return text
}
