package clrevent

import (
	"math"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
)

// Allocation is a sampled object that represents many.
type Allocation struct {
	Type   uint64 // the runtime's MethodTable
	Name   string // the type's
	Size   uint64 // the object's, 0 = not said
	Weight uint64 // bytes that the object represents
}

// DecodeTick reads AllocationTick. The runtime sends one about every 100 KB. The object is the
// one that crossed that limit. It represents all bytes since the last event.
func DecodeTick(payload []byte, version uint32, pointer int) (a Allocation, ok bool) {
	r := read(payload, pointer)
	a.Weight = uint64(r.U32())
	r.U32()
	r.U16()
	if version >= 2 {
		a.Weight, a.Type, a.Name = r.U64(), r.ptr(), r.text()
		r.U32() // heap
	}
	if version >= 4 {
		r.ptr() // address
		a.Size = r.U64()
	}
	return a, r.OK()
}

// SampleMean is the mean distance between two samples of .NET 10, in bytes
// (dotnet/runtime docs/design/features/RandomizedAllocationSampling.md).
const SampleMean = 100 * 1024

// DecodeSampled reads the event AllocationSampled. The runtime chooses every allocated byte
// with the same probability, and samples the object that contains a chosen byte. Weight is the
// bytes that the object represents: its size divided by the probability that at least one of
// its bytes is chosen. ok is false if the payload is too short. pointer is 4 or 8 bytes.
func DecodeSampled(payload []byte, pointer int) (a Allocation, ok bool) {
	r := read(payload, pointer)
	r.U32()
	r.U16()
	a.Type, a.Name = r.ptr(), r.text()
	r.ptr() // address
	a.Size = r.U64()
	if !r.OK() {
		return a, false
	}
	size := float64(max(1, min(a.Size, 1<<50)))
	a.Weight = uint64(size / -math.Expm1(size*math.Log1p(-1.0/SampleMean)))
	return a, true
}

// Exception is a thrown exception.
type Exception struct {
	Type, Message string
	HResult       uint32 // 0 if the payload ends before it
}

// DecodeException reads ExceptionThrown. A truncated payload gives truncated texts.
func DecodeException(payload []byte, pointer int) (e Exception, ok bool) {
	e.Type, payload = cutText(payload)
	e.Message, payload = cutText(payload)
	r := read(payload, pointer)
	r.ptr()
	if h := r.U32(); r.OK() {
		e.HResult = h
	}
	return e, e.Type != ""
}

// cutText reads a text that the end of the payload may truncate.
func cutText(b []byte) (string, []byte) {
	for i := 0; i+1 < len(b); i += 2 {
		if b[i] == 0 && b[i+1] == 0 {
			return nettrace.UTF16(b[:i]), b[i+2:]
		}
	}
	return nettrace.UTF16(b[:len(b)&^1]), nil
}

// DecodeSample reads CPUSample: whether the thread was in managed code. Otherwise it was in
// native code, where it may wait or compute.
func DecodeSample(payload []byte) (inManaged, ok bool) {
	const external, managed = 1, 2
	r := read(payload, 8)
	kind := r.U32()
	return kind == managed, r.OK() && (kind == external || kind == managed)
}

// Collection describes a garbage collection that starts.
type Collection struct {
	Count, Generation uint32
	Reason, Type      uint32
}

// DecodeCollection reads CollectionStart.
func DecodeCollection(payload []byte) (c Collection, ok bool) {
	r := read(payload, 8)
	c.Count, c.Generation, c.Reason, c.Type = r.U32(), r.U32(), r.U32(), r.U32()
	return c, r.OK()
}

// DecodeSuspend reads SuspendStart: whether the threads are suspended for a collection.
func DecodeSuspend(payload []byte) (collection, ok bool) {
	const forGC, forGCPreparation = 1, 6
	r := read(payload, 8)
	reason := r.U32()
	return reason == forGC || reason == forGCPreparation, r.OK()
}

// DecodeJITStart reads the method of JITStart. Its code has no address yet.
func DecodeJITStart(payload []byte) (m Method, ok bool) {
	r := read(payload, 8)
	m.ID, m.Module, m.Token = r.U64(), r.U64(), r.U32()
	r.U32() // size of the IL
	m.Namespace, m.Name = r.text(), r.text()
	return m, r.OK()
}
