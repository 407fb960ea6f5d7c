package clrevent

// DecodeWork reads WorkQueued and WorkTaken. The item is the address of an object, which a collection may
// change.
func DecodeWork(payload []byte, pointer int) (item uint64, ok bool) {
	r := read(payload, pointer)
	if len(payload) == 8 { // from the class library: a 64-bit number on every machine
		return r.U64(), r.OK()
	}
	item = r.ptr()
	r.U16()
	return item, r.OK()
}

// starvation is the reason of an adjustment: no thread took queued work for half a second.
const starvation = 6

// Adjustment is a change of the number of threads in the thread pool.
type Adjustment struct {
	Threads uint32 // from now on
	Starved bool   // because no thread took queued work
}

// DecodeAdjustment reads PoolAdjusted.
func DecodeAdjustment(payload []byte) (a Adjustment, ok bool) {
	r := read(payload, 8)
	r.U64() // throughput
	a.Threads = r.U32()
	a.Starved = r.U32() == starvation
	r.U16()
	return a, r.OK()
}
