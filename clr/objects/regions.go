package objects

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/seedwalk/seedwalk/context/memory"
)

// GcDacVars contains two bytes of version, two sizes, and then the addresses of the collector's variables
// (gcinterface.dacvars.def, major version 5; later minor versions only append to it).
const (
	varGenerationSize = 8
	varGenerations    = 16
	varTable          = 48  // of generations, of the only heap
	varAllocated      = 120 // end of the objects in the region in use
	varHeaps          = 176 // number of heaps; its address is set by a server collector only
	varHeapList       = 184
	varInvalid        = 192 // above 0 while a collection changes the heap
	varHeapOffsets    = 240 // offsets in gc_heap
	varGenOffsets     = 248 // offsets in generation
	varsSize          = 256
)

// Entries of the two tables of offsets (dac_gcheap_fields.h, dac_generation_fields.h).
const (
	heapAllocated  = 0
	heapGeneration = 18
	genContext     = 0
	genSegment     = 1
)

// Fields of a heap_segment.
const (
	segAllocated = 0
	segCommitted = 8
	segReserved  = 16
	segMem       = 32
	segNext      = 48
	segSize      = 56
)

// Bounds of the values in the collector's variables.
const (
	gcGenerations     = 5 // 0, 1, 2, large objects, pinned objects
	maxGenerationSize = 1 << 16
	maxServerHeaps    = 1 << 10
	maxRegions        = 1 << 20
	maxDebuggerTable  = 256 // entries of the debugger's table
)

// Heap is the list of regions of a process's managed heap. Read reads it from the collector's variables in
// the process's memory. The process may run meanwhile. If Busy is set, the list may be wrong.
type Heap struct {
	r       memory.Reader
	vars    [varsSize]byte
	Regions []memory.Range // sorted; a region's end is that of its last object
	Skip    []memory.Range // allocation contexts, which contain no objects; sorted by Contexts
	Version [2]uint8       // of the variables: major, minor
	Busy    bool           // a collection was changing the heap when Read began

	fixed []memory.Range // regions not in use for allocation, in list order
}

// OpenHeap finds the collector's variables in the debugger's table of globals. ok is false if no entry refers
// to them.
func OpenHeap(r memory.Reader, globals uint64) (h *Heap, ok bool) {
	h = &Heap{r: r}
	if globals == 0 {
		return nil, false
	}
	for i := range uint64(maxDebuggerTable) {
		variable, ok := memory.Word(h.r, globals+8*i)
		if !ok {
			return nil, false
		}
		at, ok := memory.Word(h.r, variable)
		if ok && at&7 == 0 && r.ReadAt(h.vars[:], at) && h.plausible() {
			h.Version = [2]uint8{h.vars[0], h.vars[1]}
			return h, true
		}
	}
	return nil, false
}

// plausible reports whether vars may be the collector's.
func (h *Heap) plausible() bool {
	size := h.value(varGenerationSize)
	if h.vars[0] == 0 || h.vars[0] > 32 || h.value(varGenerations) != gcGenerations || size < 64 ||
		size > maxGenerationSize || size&7 != 0 {
		return false
	}
	segment, ok := h.i32(h.value(varGenOffsets) + 4*genSegment)
	return ok && uint64(segment)+8 <= size
}

func (h *Heap) value(at int) uint64 { return binary.LittleEndian.Uint64(h.vars[at:]) }

// Changes is the address of an int32 that is above 0 while a collection changes the heap.
func (h *Heap) Changes() uint64 { return h.value(varInvalid) }

// Changing reports whether a collection changes the heap now.
func (h *Heap) Changing() bool {
	n, ok := h.i32(h.Changes())
	return ok && n > 0
}

// Still runs read and reports whether no collection was changing the heap before and after it. A collection
// that begins and ends during read is not seen. Still does not run read if one is changing the heap already.
func (h *Heap) Still(read func()) bool {
	if h.Changing() {
		return false
	}
	read()
	return !h.Changing()
}

// Read reads the list of regions. It returns false if the list is inconsistent, as it may be during a
// collection.
func (h *Heap) Read() bool {
	h.Regions, h.Skip, h.fixed = nil, nil, nil
	h.Busy = h.Changing()
	context, ok1 := h.i32(h.value(varGenOffsets) + 4*genContext)
	segment, ok2 := h.i32(h.value(varGenOffsets) + 4*genSegment)
	if !ok1 || !ok2 {
		return false
	}
	ok := false
	for _, heap := range h.heaps() {
		if ok = h.generations(heap, uint64(context), uint64(segment)); !ok {
			return false
		}
	}
	h.Regions = joinRegions(h.Regions)
	return ok
}

// Holds reports whether an address is in a region.
func (h *Heap) Holds(at uint64) bool {
	i := sort.Search(len(h.Regions), func(i int) bool { return h.Regions[i].End > at })
	return i < len(h.Regions) && h.Regions[i].Start <= at
}

// joinRegions sorts regions and joins overlapping ones. A collector with segments lists a segment once for
// each generation that shares it.
func joinRegions(all []memory.Range) (out []memory.Range) {
	slices.SortFunc(all, byStart)
	for _, r := range all {
		if n := len(out); n > 0 && r.Start < out[n-1].End {
			out[n-1].End = max(out[n-1].End, r.End)
			continue
		}
		out = append(out, r)
	}
	return out
}

// Unchanged reports whether no collection has changed the heap since Read.
func (h *Heap) Unchanged() bool {
	now := &Heap{r: h.r, vars: h.vars}
	return !h.Busy && now.Read() && !now.Busy && slices.Equal(h.fixed, now.fixed)
}

func byStart(a, b memory.Range) int {
	if a.Start < b.Start {
		return -1
	}
	return 1
}

// heap locates the generations of one heap, and the end of its allocated memory.
type heap struct{ table, allocated uint64 }

// heaps returns the only heap, or those of a server collector; nil if they cannot be read.
func (h *Heap) heaps() (out []heap) {
	if h.value(varHeaps) == 0 {
		allocated, _ := memory.Word(h.r, h.value(varAllocated))
		return []heap{{h.value(varTable), allocated}}
	}
	n, ok := h.i32(h.value(varHeaps))
	list, ok1 := memory.Word(h.r, h.value(varHeapList))
	table, ok2 := h.i32(h.value(varHeapOffsets) + 4*heapGeneration)
	end, ok3 := h.i32(h.value(varHeapOffsets) + 4*heapAllocated)
	if !ok || !ok1 || !ok2 || !ok3 || n < 0 || n > maxServerHeaps {
		return nil
	}
	for i := range uint64(n) {
		at, ok := memory.Word(h.r, list+8*i)
		if !ok {
			return nil
		}
		allocated, _ := memory.Word(h.r, at+uint64(end))
		out = append(out, heap{at + uint64(table), allocated})
	}
	return out
}

// generations reads the regions and the allocation contexts of one heap's generations.
func (h *Heap) generations(of heap, context, segment uint64) bool {
	size := h.value(varGenerationSize)
	for g := range uint64(gcGenerations) {
		at := of.table + g*size
		pointer, ok := memory.Word(h.r, at+context)
		limit, ok1 := memory.Word(h.r, at+context+8)
		if ok && ok1 {
			h.context(pointer, limit)
		}
		next, ok := memory.Word(h.r, at+segment)
		for ok && next != 0 {
			if len(h.Regions) >= maxRegions {
				return false
			}
			next, ok = h.region(next, of.allocated)
		}
		if !ok {
			return false
		}
	}
	return true
}

// region adds the region of a heap_segment.
func (h *Heap) region(at, allocated uint64) (next uint64, ok bool) {
	var b [segSize]byte
	if at&7 != 0 || !h.r.ReadAt(b[:], at) {
		return 0, false
	}
	word := func(off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
	start, end := word(segMem), word(segAllocated)
	current := allocated > start && allocated <= word(segReserved)
	if current {
		end = max(end, allocated)
	}
	if start&7 != 0 || end < start || end > word(segReserved) {
		return 0, false
	}
	if !current {
		h.fixed = append(h.fixed, memory.Range{Start: start, End: end})
	}
	if end > start {
		h.Regions = append(h.Regions, memory.Range{Start: start, End: end})
	}
	return word(segNext), true
}

// context adds an allocation context, unless it is implausible. The limit leaves room for the smallest
// object.
func (h *Heap) context(pointer, limit uint64) {
	const smallest = 24
	if pointer != 0 && pointer&7 == 0 && limit >= pointer && limit-pointer < 1<<32 {
		h.Skip = append(h.Skip, memory.Range{Start: pointer, End: limit + smallest})
	}
}

// Contexts adds the allocation contexts of threads, and sorts all of them.
func (h *Heap) Contexts(of []memory.Range) {
	for _, c := range of {
		h.context(c.Start, c.End)
	}
	slices.SortFunc(h.Skip, byStart)
}

func (h *Heap) i32(addr uint64) (int32, bool) {
	v, ok := memory.Uint32(h.r, addr)
	return int32(v), ok
}
