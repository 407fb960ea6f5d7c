package objects

import (
	"encoding/binary"
	"sort"

	"github.com/seedwalk/seedwalk/context/memory"
)

// Reader reads memory with gaps.
type Reader interface {
	memory.Reader
	// ReadSome reads as much of p from addr as is readable without a gap.
	ReadSome(p []byte, addr uint64) int
}

// Object is an object and the bytes of it that were read. During a walk, Data is valid until the next
// object.
type Object struct {
	Addr uint64
	Type *Type
	Size uint64 // bytes; Data may have fewer
	Data []byte
}

// Word returns the word at an offset, 0 beyond the end.
func (o *Object) Word(offset uint64) uint64 {
	if n := uint64(len(o.Data)); n >= 8 && offset <= n-8 {
		return binary.LittleEndian.Uint64(o.Data[offset:])
	}
	return 0
}

// Field returns the word of a field, 0 if the type has no such field.
func (o *Object) Field(name string) uint64 {
	offset, ok := o.Type.Field(name)
	if !ok {
		return 0
	}
	return o.Word(offset)
}

// Uint32 returns a field of four bytes, 0 if the type has no such field.
func (o *Object) Uint32(name string) uint32 {
	offset, ok := o.Type.Field(name)
	if n := uint64(len(o.Data)); !ok || n < 4 || offset > n-4 {
		return 0
	}
	return binary.LittleEndian.Uint32(o.Data[offset:])
}

// Walked counts the results of a walk.
type Walked struct {
	Objects int    // blocks of free memory between objects included
	Bytes   uint64 // of all regions
	Lost    uint64 // bytes in which no object was found
}

// Bounds of a walk.
const (
	blockSize   = 1 << 20
	maxObject   = 1 << 16 // bytes read of one object
	smallest    = 24      // least size of an object in bytes
	maxStrange  = 1 << 16 // words of a heap that were looked up and are not types
	maxMissing  = 1 << 16 // pages of a heap that could not be read
	cachedTypes = 1 << 10
)

// walk goes through regions from object to object.
type walk struct {
	r       Reader
	types   *Types
	skip    []memory.Range
	see     func(*Object)
	want    func(*Type) bool
	block   []byte
	at      uint64 // address of block
	cache   [cachedTypes]*Type
	wanted  map[*Type]bool
	strange int
	missing int
	out     Walked
}

// Walk visits the objects of the heap whose types want selects. It goes from object to object. If there is
// none at an address, it tries the following words.
func (h *Heap) Walk(r Reader, types *Types, want func(*Type) bool, see func(*Object)) Walked {
	w := &walk{r: r, types: types, skip: h.Skip, see: see, want: want, wanted: map[*Type]bool{},
		block: make([]byte, 0, blockSize)}
	for _, region := range h.Regions {
		w.region(region)
	}
	return w.out
}

func (w *walk) region(of memory.Range) {
	w.out.Bytes += of.End - of.Start
	for at := of.Start; at+smallest <= of.End; {
		head, ok := w.word(at)
		if !ok { // missing memory
			next := min((at|0xfff)+1, of.End)
			if w.missing++; w.missing > maxMissing {
				next = of.End
			}
			w.out.Lost, at = w.out.Lost+next-at, next
			continue
		}
		if head == 0 || w.contextAt(at) != 0 {
			at = w.empty(at, of.End)
			continue
		}
		typ := w.typeOf(head &^ 7)
		size := uint64(0)
		if typ != nil {
			size = w.sizeOf(at, typ)
		}
		if size < smallest || size > of.End-at {
			w.out.Lost, at = w.out.Lost+8, at+8
			continue
		}
		w.out.Objects++
		if w.wanted[typ] {
			w.show(at, typ, size)
		}
		at += size
	}
}

// contextAt returns the end of the allocation context that begins at an address, or 0.
func (w *walk) contextAt(at uint64) uint64 {
	i := sort.Search(len(w.skip), func(i int) bool { return w.skip[i].Start >= at })
	if i < len(w.skip) && w.skip[i].Start == at {
		return w.skip[i].End
	}
	return 0
}

// empty returns the next word after at that may be an object: after the allocation context that contains at,
// or else after words that are 0.
func (w *walk) empty(at, end uint64) uint64 {
	if to := w.contextAt(at); to != 0 {
		return min(to, end)
	}
	if i := sort.Search(len(w.skip), func(i int) bool { return w.skip[i].Start > at }); i > 0 &&
		w.skip[i-1].Holds(at) {
		return min(w.skip[i-1].End, end)
	}
	for from := at; at < end; at += 8 {
		if v, ok := w.word(at); !ok || v != 0 {
			w.out.Lost += at - from
			return at
		}
	}
	return end
}

// typeOf returns the type of a MethodTable, nil if table is not one.
func (w *walk) typeOf(table uint64) *Type {
	slot := &w.cache[table>>4%cachedTypes]
	if *slot != nil && (*slot).Table == table {
		return *slot
	}
	before := len(w.types.known)
	if w.strange > maxStrange {
		return w.types.known[table]
	}
	typ := w.types.Of(table)
	if typ == nil {
		w.strange += max(len(w.types.known)-before, 0)
		return nil
	}
	*slot = typ
	if _, ok := w.wanted[typ]; !ok {
		w.wanted[typ] = w.want(typ)
	}
	return typ
}

// sizeOf returns an object's size, a multiple of 8; 0 if its length cannot be read.
func (w *walk) sizeOf(at uint64, typ *Type) uint64 {
	size := uint64(typ.size)
	if typ.component != 0 {
		n, ok := w.word(at + w.types.l.arrayLength)
		if !ok {
			return 0
		}
		size += uint64(uint32(n)) * uint64(typ.component)
	}
	return (size + 7) &^ 7
}

// show visits an object.
func (w *walk) show(at uint64, typ *Type, size uint64) {
	n := int(min(size, maxObject))
	off := at - w.at
	if off+uint64(n) > uint64(len(w.block)) {
		if !w.load(at) || len(w.block) < n {
			return
		}
		off = 0
	}
	w.see(&Object{at, typ, size, w.block[off : off+uint64(n)]})
}

// word reads a word through block.
func (w *walk) word(at uint64) (uint64, bool) {
	off := at - w.at
	if n := uint64(len(w.block)); n < 8 || off > n-8 {
		if !w.load(at) {
			return 0, false
		}
		off = 0
	}
	return binary.LittleEndian.Uint64(w.block[off:]), true
}

func (w *walk) load(at uint64) bool {
	w.block = w.block[:blockSize]
	w.block, w.at = w.block[:w.r.ReadSome(w.block, at)], at
	return len(w.block) >= 8
}

// Load reads the object at an address, at most 64 KB of it. It returns false if no object is there, or if it
// cannot be read.
func (t *Types) Load(r Reader, at uint64) (o Object, ok bool) {
	const usual = 128 // bytes; most objects are smaller, and need one read
	b := make([]byte, usual)
	b = b[:r.ReadSome(b, at)]
	head := Object{Data: b}
	typ := t.Of(head.Word(0) &^ 7)
	if at&7 != 0 || typ == nil {
		return o, false
	}
	size := uint64(typ.size)
	if typ.component != 0 {
		size += uint64(uint32(head.Word(t.l.arrayLength))) * uint64(typ.component)
	}
	if size <= uint64(len(b)) {
		return Object{at, typ, size, b[:size]}, true
	}
	b = make([]byte, min(size, maxObject))
	return Object{at, typ, size, b}, r.ReadAt(b, at)
}
