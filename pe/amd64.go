package pe

import "sort"

// RuntimeFunction is one x64 RUNTIME_FUNCTION.
type RuntimeFunction struct {
	Begin  uint32 // RVA of the first instruction
	End    uint32 // RVA one past the last
	Unwind uint32 // RVA of the UNWIND_INFO; of another RUNTIME_FUNCTION if bit 0 is set
}

// AMD64EntrySize is the size of an x64 RUNTIME_FUNCTION, bytes.
const AMD64EntrySize = 12

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

// CountAMD64 is the number of entries of the x64 exception directory.
func (f *File) CountAMD64() int {
	return len(f.x64) / AMD64EntrySize
}

// EntryAMD64 returns entry i of the exception directory as it stands there,
// 0 <= i < CountAMD64.
func (f *File) EntryAMD64(i int) RuntimeFunction {
	return readFunction(f.x64[i*AMD64EntrySize:])
}

// FindAMD64 returns the function at rva, through indirect entries: with those
// the range may be another's. The reason is NoEntry if no entry covers rva. It
// allocates nothing.
func (f *File) FindAMD64(rva uint32) (RuntimeFunction, Reason) {
	fn, ok := f.LookupAMD64(rva)
	if !ok {
		return fn, NoEntry
	}
	return f.ResolveAMD64(fn)
}

// LookupAMD64 returns the entry that covers rva as it stands in the exception
// directory. Where entries overlap it is the one that begins last.
func (f *File) LookupAMD64(rva uint32) (RuntimeFunction, bool) {
	if f.spans != nil {
		return f.lookupSpan(rva)
	}
	lo, hi := 0, len(f.x64)/AMD64EntrySize
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if u32(f.x64[mid*AMD64EntrySize:]) <= rva {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return RuntimeFunction{}, false
	}
	fn := f.EntryAMD64(lo - 1)
	return fn, fn.Contains(rva)
}

// ResolveAMD64 follows indirect entries to one that has unwind information.
func (f *File) ResolveAMD64(fn RuntimeFunction) (RuntimeFunction, Reason) {
	for range maxLinks {
		if !fn.Indirect() {
			return fn, OK
		}
		b := f.runs.at(fn.Unwind &^ 1)
		if len(b) < AMD64EntrySize {
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
	for ; len(pdata) >= AMD64EntrySize; pdata = pdata[AMD64EntrySize:] {
		fn := readFunction(pdata)
		if fn.Begin < last || fn.End <= fn.Begin {
			return false
		}
		last = fn.End
	}
	return true
}

// flatten turns a table that is not regular into spans that are; nil if it is
// regular. Of entries that overlap the one that begins last holds, and of those
// the shortest. There are at most two spans per entry.
func flatten(pdata []byte) []span {
	if regular(pdata) {
		return nil
	}
	order := make([]span, 0, len(pdata)/AMD64EntrySize)
	for i := 0; (i+1)*AMD64EntrySize <= len(pdata); i++ {
		if fn := readFunction(pdata[i*AMD64EntrySize:]); fn.Begin < fn.End {
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

// until gives the addresses from w.at to limit to the entries that are open.
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

func (f *File) lookupSpan(rva uint32) (RuntimeFunction, bool) {
	lo, hi := 0, len(f.spans)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if f.spans[mid].begin <= rva {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 || rva >= f.spans[lo-1].end {
		return RuntimeFunction{}, false
	}
	return f.EntryAMD64(int(f.spans[lo-1].entry)), true
}

// sortARM64 returns an ARM64 exception directory sorted by begin: itself if it
// is, else a copy.
func sortARM64(pdata []byte) []byte {
	n := len(pdata) / ARM64EntrySize
	begin := func(i int) uint32 { return ARM64Entry(pdata, i).Begin }
	if sort.SliceIsSorted(make([]struct{}, n), func(i, j int) bool { return begin(i) < begin(j) }) {
		return pdata
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return begin(order[i]) < begin(order[j]) })
	out := make([]byte, 0, n*ARM64EntrySize)
	for _, i := range order {
		out = append(out, pdata[i*ARM64EntrySize:(i+1)*ARM64EntrySize]...)
	}
	return out
}
