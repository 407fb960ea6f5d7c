package amd64

import (
	"encoding/binary"
	"sort"

	"github.com/seedwalk/seedwalk/pe/rva"
)

// RuntimeFunction is one x64 RUNTIME_FUNCTION.
type RuntimeFunction struct {
	Begin  uint32 // RVA of the first instruction
	End    uint32 // RVA one past the last
	Unwind uint32 // RVA of the UNWIND_INFO; of another RUNTIME_FUNCTION if bit 0 is set
}

// EntrySize is the size of an x64 RUNTIME_FUNCTION, bytes.
const EntrySize = 12

// maxLinks is how many indirect entries, and how many chained ones, are
// followed: as many as Windows does.
const maxLinks = 32

// Indirect reports whether Unwind points to another RUNTIME_FUNCTION.
func (r RuntimeFunction) Indirect() bool { return r.Unwind&1 != 0 }

// Contains reports whether rva lies in the function.
func (r RuntimeFunction) Contains(rva uint32) bool { return r.Begin <= rva && rva < r.End }

func readFunction(b []byte) RuntimeFunction {
	_ = b[11]
	return RuntimeFunction{u32(b), u32(b[4:]), u32(b[8:])}
}

// Table is the exception directory of one image, or of a copy of a part of it,
// with the bytes that its entries point to. All methods but SetSize are safe for
// concurrent use. The zero Table has no entry.
type Table struct {
	pdata []byte
	spans []span // of a directory that is not sorted or overlaps; nil = use pdata
	image rva.Blocks
	size  uint32 // of the image, 0 = unknown
	unix  bool   // one of the CLR's images for Unix
}

// New makes the table of an exception directory. image holds the bytes that the
// entries point to; unix means that the image is one the CLR made for Unix.
func New(pdata []byte, image rva.Blocks, unix bool) Table {
	return Table{pdata: pdata, spans: flatten(pdata), image: image, unix: unix}
}

// SetSize sets the image's size in bytes, for Check; 0 means unknown.
func (t *Table) SetSize(size uint32) { t.size = size }

// Unix reports whether the image is one the CLR made for Unix: its functions
// preserve System V's registers.
func (t *Table) Unix() bool { return t.unix }

// Tail returns at most max bytes of the image from rva to the end of its block,
// or nil. It does not copy or allocate.
func (t *Table) Tail(rva uint32, max int) []byte { return t.image.Tail(rva, max) }

// Len is the number of entries of the x64 exception directory.
func (t *Table) Len() int {
	return len(t.pdata) / EntrySize
}

// Entry returns entry i of the exception directory, 0 <= i < Len. It may be
// indirect.
func (t *Table) Entry(i int) RuntimeFunction {
	return readFunction(t.pdata[i*EntrySize:])
}

// Find returns the function at rva. It follows indirect entries, so the
// function's range need not contain rva. The reason is NoEntry if no entry covers
// rva. Find allocates nothing.
func (t *Table) Find(rva uint32) (RuntimeFunction, Reason) {
	fn, ok := t.Lookup(rva)
	if !ok {
		return fn, NoEntry
	}
	return t.Resolve(fn)
}

// Lookup returns the directory's entry that covers rva; it may be indirect. If
// entries overlap, it is the one that begins last.
func (t *Table) Lookup(rva uint32) (RuntimeFunction, bool) {
	if t.spans != nil {
		return t.lookupSpan(rva)
	}
	pdata := t.pdata
	lo, hi := 0, len(pdata)/EntrySize
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if at := mid * EntrySize; u32(pdata[at:at+4]) <= rva {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return RuntimeFunction{}, false
	}
	fn := t.Entry(lo - 1)
	return fn, fn.Contains(rva)
}

// Resolve follows indirect entries to one with unwind information, at most
// maxLinks of them.
func (t *Table) Resolve(fn RuntimeFunction) (RuntimeFunction, Reason) {
	for range maxLinks {
		if !fn.Indirect() {
			return fn, OK
		}
		b := t.image.At(fn.Unwind &^ 1)
		if len(b) < EntrySize {
			return fn, Outside
		}
		fn = readFunction(b)
	}
	return fn, IndirectLoop
}

// span is a part of the address space and the entry that covers it.
type span struct {
	begin, end uint32
	entry      uint32 // index in the exception directory
}

// regular reports whether entries are sorted, do not overlap and end after
// they begin.
func regular(pdata []byte) bool {
	var last uint32
	for ; len(pdata) >= EntrySize; pdata = pdata[EntrySize:] {
		fn := readFunction(pdata)
		if fn.Begin < last || fn.End <= fn.Begin {
			return false
		}
		last = fn.End
	}
	return true
}

// flatten turns a table that is not regular into sorted spans that do not
// overlap; nil if the table is regular. Of overlapping entries, the one that
// begins last applies, and of those the shortest. There are at most two spans per
// entry.
func flatten(pdata []byte) []span {
	if regular(pdata) {
		return nil
	}
	order := make([]span, 0, len(pdata)/EntrySize)
	for i := 0; (i+1)*EntrySize <= len(pdata); i++ {
		if fn := readFunction(pdata[i*EntrySize:]); fn.Begin < fn.End {
			order = append(order, span{fn.Begin, fn.End, uint32(i)})
		}
	}
	sort.SliceStable(order, func(i, j int) bool {
		a, b := &order[i], &order[j]
		return a.begin < b.begin || a.begin == b.begin && a.end > b.end
	})
	w := flattener{out: make([]span, 0, len(order))}
	for _, s := range order {
		w.until(s.begin)
		w.open = append(w.open, s)
		w.at = s.begin
	}
	w.until(1<<32 - 1)
	return w.out
}

// flattener walks the address space upwards with the entries that are open.
type flattener struct {
	at   uint32
	open []span
	out  []span
}

// until writes the spans of the open entries from w.at to limit, and closes the
// entries that end there or before.
func (w *flattener) until(limit uint32) {
	for len(w.open) > 0 {
		top := &w.open[len(w.open)-1]
		end := min(top.end, limit)
		if w.at < end {
			w.out = append(w.out, span{w.at, end, top.entry})
			w.at = end
		}
		if top.end > limit {
			return
		}
		w.open = w.open[:len(w.open)-1]
	}
}

func (t *Table) lookupSpan(rva uint32) (RuntimeFunction, bool) {
	lo, hi := 0, len(t.spans)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.spans[mid].begin <= rva {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 || rva >= t.spans[lo-1].end {
		return RuntimeFunction{}, false
	}
	return t.Entry(int(t.spans[lo-1].entry)), true
}

// ReadEntry decodes the RUNTIME_FUNCTION that b, at least EntrySize bytes, begins
// with.
func ReadEntry(b []byte) RuntimeFunction { return readFunction(b) }

// AppendEntry appends fn as encoded in an exception directory.
func AppendEntry(b []byte, fn RuntimeFunction) []byte {
	for _, w := range [3]uint32{fn.Begin, fn.End, fn.Unwind} {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}
