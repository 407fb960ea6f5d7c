package probe

import (
	"sync/atomic"
	"unsafe"
)

// SetRule gives the probe a tasks.Rule. A rule of a type describes how the probe follows objects
// of that type; table is then the MethodTable. A rule of a return address describes where a frame
// holds an object; table is then the return address. SetRule replaces an earlier rule of the same
// table. It returns false if the probe's table of rules has no room.
func (f *File) SetRule(table, with uint64) bool {
	const near = 8 // places from its own at which a type's rule may be
	all := unsafe.Slice((*rule)(unsafe.Pointer(&f.data[rulesAt])), rules)
	at := (table >> 3) * 0x9e3779b97f4a7c15 >> (64 - rulesLog)
	for k := range uint64(near) {
		r := &all[(at+k)%rules]
		if t := atomic.LoadUint64(&r.table); t == 0 || t == table {
			atomic.StoreUint64(&r.rule, with)
			atomic.StoreUint64(&r.table, table)
			if with&ruleFrame != 0 {
				f.widen(table)
			}
			return true
		}
	}
	return false
}

// widen adds a return address to the range of those that have rules.
func (f *File) widen(ip uint64) {
	low, size := f.h.code, f.h.codeSize
	if low == 0 {
		low = ip
	}
	high := max(low+size, ip)
	low = min(low, ip)
	atomic.StoreUint64(&f.h.codeSize, high-low)
	atomic.StoreUint64(&f.h.code, low)
}

// FollowObjects makes samples contain the objects that their threads refer to. heap and size are the
// bounds of the managed heap. changes is the address of an int32 that is above 0 while a collection
// changes the heap. handle is the offset in the runtime's Thread of the handle of its object, 0 if
// unknown.
func (f *File) FollowObjects(heap, size, changes uint64, handle uint32) {
	atomic.StoreUint32(&f.h.threadHandle, handle)
	atomic.StoreUint64(&f.h.heapChanges, changes)
	atomic.StoreUint64(&f.h.heap, heap)
	atomic.StoreUint64(&f.h.heapSize, size)
}
