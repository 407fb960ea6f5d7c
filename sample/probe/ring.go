package probe

import (
	"sync/atomic"
	"unsafe"
)

// Record is one record of the ring. Its slices are valid until the function that gets the record
// returns.
type Record struct {
	TID       uint32
	Slot      int
	Why       Why
	Flags     uint16
	Time      uint64   // our CLOCK_MONOTONIC, nanoseconds
	Weight    uint32   // timer periods that it represents, at least 1
	Nanos     uint32   // spent in the handler
	StackAddr uint64   // address of Stack's first byte
	Regs      []uint64 // x86-64: r8-r15 rdi rsi rbp rbx rdx rax rcx rsp rip; ARM64: x0-x30 sp pc d8-d15
	Extra     []byte   // of the runtime's Thread object, if a return address is hijacked; otherwise empty
	Event     uint32   // the runtime's event id
	Since     uint64   // of a wait: its start, like Time; of ClockHit: the thread's CPU time
	Payload   []byte   // of a wait's start, or of the event
	Stack     []byte
	BelowAddr uint64 // address on the thread's own stack if it was on its alternate one, 0 = unknown
	Below     []byte
}

// reader reads consecutive records.
type reader struct {
	h     *header
	form  format
	ring  []byte
	tail  uint64            // position of the oldest unread record
	freed uint64            // the tail last stored for the probe
	done  map[uint64]uint64 // positions and sizes of records read beyond the tail
	buf   []byte
	ahead uint64 // how far the clock of the target's time namespace is ahead of ours, nanoseconds
	Stuck uint64 // records skipped because they were not committed
	Bad   uint64 // positions with an impossible record

	step func(what string) // for tests: others may run before what follows; nil
}

func (r *reader) point(what string) {
	if r.step != nil {
		r.step(what)
	}
}

// read passes every committed record to f, and frees it.
func (r *reader) read(f func(*Record)) {
	r.point("load head")
	head := atomic.LoadUint64(&r.h.head)
	if head-r.tail > RingSize { // not written by a probe
		r.Bad++
		r.tail = head
	}
	for at := r.tail; at < head; {
		size, committed, ok := r.check(at, head)
		if !ok { // claimed a moment ago; its size is not written yet
			break
		}
		if at == r.tail && committed {
			r.take(at, size, f)
			r.tail += size
			r.pass()
			if r.tail-r.freed > RingSize/8 {
				r.free()
			}
			at = r.tail
			continue
		}
		if _, seen := r.done[at]; !seen && committed {
			r.take(at, size, f)
			r.done[at] = size
		} else if !seen {
			r.Stuck++
		}
		at += size
	}
	r.free()
}

// pass moves the tail over records that were read before.
func (r *reader) pass() {
	if len(r.done) == 0 {
		return
	}
	for size, ok := r.done[r.tail]; ok; size, ok = r.done[r.tail] {
		delete(r.done, r.tail)
		r.tail += size
	}
}

// free lets the probe overwrite the records before the tail.
func (r *reader) free() {
	r.point("store tail")
	r.freed = r.tail
	atomic.StoreUint64(&r.h.tail, r.tail)
}

// check reads the words of a record that show whether it is claimed and committed. ok is false if it is
// not claimed, or impossible.
func (r *reader) check(at, head uint64) (size uint64, committed, ok bool) {
	r.point("load claim")
	rec := (*record)(unsafe.Pointer(&r.ring[at%RingSize]))
	if atomic.LoadUint64(&rec.claim) != at|2 {
		return 0, false, false
	}
	size = uint64(rec.size)
	if size < r.form.record() || size%align != 0 || size > head-at {
		r.Bad++
		return 0, false, false
	}
	r.point("load commit")
	return size, atomic.LoadUint64(&rec.commit) == at|1, true
}

// take copies a record, which may wrap around, and passes it to f.
func (r *reader) take(pos, size uint64, f func(*Record)) {
	off := pos % RingSize
	if uint64(cap(r.buf)) < size {
		r.buf = make([]byte, size)
	}
	b := r.buf[:size]
	r.point("copy")
	n := copy(b, r.ring[off:])
	copy(b[n:], r.ring)
	raw := (*record)(unsafe.Pointer(&b[0]))
	body, room := b[r.form.record():], uint64(r.form.extra)
	at := room + (uint64(raw.payloadSize)+7)&^7
	end := at + uint64(raw.stackSize)
	below := (end + 7) &^ 7
	if uint64(raw.extraSize) > room || raw.payloadSize > MaxPayload || end > uint64(len(body)) ||
		raw.belowSize > 0 && (raw.belowSize > RingSize || below+raw.belowSize > uint64(len(body))) {
		r.Bad++
		return
	}
	rec := &Record{TID: raw.tid, Slot: int(raw.slot), Why: Why(raw.why), Flags: raw.flags, Time: raw.time,
		Weight: raw.weight, Nanos: raw.nanos,
		StackAddr: raw.stack, Regs: unsafe.Slice((*uint64)(unsafe.Pointer(&b[recordHead])), r.form.regs),
		Extra: body[:raw.extraSize], Event: raw.event, Since: raw.since,
		Payload: body[room : room+uint64(raw.payloadSize)],
		Stack:   body[at:end], BelowAddr: raw.below}
	if raw.belowSize > 0 {
		rec.Below = body[below : below+raw.belowSize]
	}
	f(rec)
}
