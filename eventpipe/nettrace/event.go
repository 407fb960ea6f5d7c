package nettrace

import "github.com/seedwalk/seedwalk/internal/buf"

// Bits of a compressed header: which fields it contains.
const (
	hasMetadata = 1 << iota
	hasSequence
	hasThread
	hasStack
	hasActivity // version 6: hasLabels
	hasRelated
	isSorted
	hasPayload
)

// compressed is the bit of a block's flags.
const compressed = 1

// blockHeader is the shortest header of a block of events.
const blockHeader = 20

// eventBlock holds the unread part of a block of events and the last header. A compressed
// header contains only the differences from it.
type eventBlock struct {
	in         buf.Reader
	active     bool
	compressed bool
	head       head
}

func (b *eventBlock) left() bool { return b.active && b.in.Len() > 0 }

// head is an event's header in the trace's form.
type head struct {
	metadata          uint32
	sequence          uint32
	capture, thread   uint64
	processor, stack  uint32
	timestamp         uint64
	activity, related [16]byte
	labels            uint32
	sorted            bool
	size              uint32
}

// open starts the current block. It returns false if the header is invalid.
func (r *Reader) open() bool {
	e := &r.events
	*e = eventBlock{in: buf.At(r.data, 0)}
	size := e.in.U16()
	flags := e.in.U16()
	if !e.in.OK() || size < blockHeader || int(size) > len(r.data) {
		if r.cut == nil {
			r.fault(BadBlock, r.base, "")
		}
		return false
	}
	e.in = buf.At(r.data, uint64(size))
	e.active, e.compressed = true, flags&compressed != 0
	return true
}

func (r *Reader) eventBlock() {
	if r.trace.Version < 4 {
		r.events = eventBlock{in: buf.At(r.data, 0), active: true}
		return
	}
	r.open()
}

// nextEvent decodes one event of the block. It returns false after the last one.
func (r *Reader) nextEvent() bool {
	if r.trace.Version < 4 {
		return r.nextNetperf()
	}
	at := r.base + int64(r.events.in.Pos())
	payload, ok := r.decode()
	if !ok {
		r.abandon(BadEvent, at)
		return false
	}
	return r.deliver(payload, at)
}

// abandon leaves a block at invalid data. For a truncated block, it reports no new fault.
func (r *Reader) abandon(reason Reason, at int64) {
	r.events.active = false
	if r.cut == nil || r.cut.Reason != Truncated {
		r.fault(reason, at, "")
	}
}

// decode reads a header into events.head and returns the payload.
func (r *Reader) decode() ([]byte, bool) {
	e := &r.events
	v6 := r.trace.Version >= 6
	if e.compressed {
		e.head.readCompressed(&e.in, v6)
		payload := e.in.Bytes(uint64(e.head.size))
		return payload, e.in.OK()
	}
	return e.head.readPlain(&e.in, v6)
}

func (h *head) readCompressed(b *buf.Reader, v6 bool) {
	flags := b.U8()
	if flags&hasMetadata != 0 {
		h.metadata = u32(b)
	}
	if flags&hasSequence != 0 {
		h.sequence += u32(b)
		h.capture = b.ULEB()
		h.processor = u32(b)
	}
	if h.metadata != 0 || v6 {
		h.sequence++
	}
	if flags&hasThread != 0 {
		h.thread = b.ULEB()
	}
	if flags&hasStack != 0 {
		h.stack = u32(b)
	}
	h.timestamp += b.ULEB()
	h.readIDs(b, flags, v6)
	h.sorted = flags&isSorted != 0
	if flags&hasPayload != 0 {
		h.size = u32(b)
	}
}

// readIDs reads the index of an event's labels (version 6), or the ids of its activities.
func (h *head) readIDs(b *buf.Reader, flags byte, v6 bool) {
	if v6 {
		if flags&hasActivity != 0 {
			h.labels = u32(b)
		}
		return
	}
	if flags&hasActivity != 0 {
		copy(h.activity[:], b.Bytes(16))
	}
	if flags&hasRelated != 0 {
		copy(h.related[:], b.Bytes(16))
	}
}

// readPlain reads an uncompressed event: its size comes first.
func (h *head) readPlain(b *buf.Reader, v6 bool) ([]byte, bool) {
	size := b.U32()
	start := b.Pos()
	id := b.U32()
	h.metadata, h.sorted = id&^(1<<31), id>>31 == 0 // ep-block.c of version 4 sets the bit on unsorted events
	h.sequence, h.thread, h.capture = b.U32(), b.U64(), b.U64()
	h.processor, h.stack, h.timestamp = b.U32(), b.U32(), b.U64()
	if v6 {
		h.sorted = !h.sorted
		h.labels = b.U32()
	} else {
		copy(h.activity[:], b.Bytes(16))
		copy(h.related[:], b.Bytes(16))
	}
	h.size = b.U32()
	payload := b.Bytes(uint64(h.size))
	if !b.OK() || uint64(size) < uint64(b.Pos()-start) {
		return nil, false
	}
	end := uint64(start) + uint64(size)
	if !v6 {
		end = (end + 3) &^ 3
	}
	if end > uint64(len(b.Data)) {
		if end-3 > uint64(len(b.Data)) {
			return nil, false
		}
		end = uint64(len(b.Data)) // the last one's padding
	}
	*b = buf.At(b.Data, end)
	return payload, true
}

// deliver makes an Event from the header. It returns false if the event is unusable.
func (r *Reader) deliver(payload []byte, at int64) bool {
	h, e := &r.events.head, &r.event
	meta := r.recent
	if meta == nil || meta.ID != h.metadata {
		if meta = r.metadata[h.metadata]; meta != nil {
			r.recent = meta
		}
	}
	counter := h.capture
	if r.trace.Version >= 6 {
		counter = r.counter(counter)
	}
	lost, restart := r.threads.see(counter, h.sequence)
	r.counts.Lost += int64(lost)
	if restart {
		r.counts.Restarts++
	}
	r.counts.Events++
	*e = Event{Meta: meta, Thread: h.thread, CaptureThread: h.capture,
		Sequence: h.sequence, Lost: lost, Restart: restart,
		Processor: h.processor, Timestamp: h.timestamp, StackID: h.stack, Labels: h.labels,
		Activity: h.activity, Related: h.related,
		Sorted: h.sorted, Payload: payload, Offset: at}
	if meta == nil {
		e.Meta = &unknown
		r.fault(NoMetadata, at, "")
	}
	if r.trace.Version >= 6 {
		r.nameThreads(e, at)
	}
	r.resolve(e)
	return true
}

// unknown replaces a missing description. The event is still delivered, so that its thread's counter is seen.
var unknown = Metadata{}

// resolve finds the event's stack.
func (r *Reader) resolve(e *Event) {
	if e.StackID == 0 {
		return
	}
	raw, ok := r.stacks.find(e.StackID)
	if !ok {
		e.StackLost = true
		r.counts.LostStacks++
		r.fault(NoStack, e.Offset, "")
		return
	}
	e.Stack = Stack{raw, r.trace.PointerSize}
}
