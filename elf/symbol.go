package elf

import (
	"iter"
	"runtime"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// Symbol is one entry of a symbol table.
type Symbol struct {
	Name    string
	Value   uint64 // virtual address, for symbols defined in the image
	Size    uint64
	Type    uint8  // STT_: 1 object, 2 function, 10 indirect function
	Bind    uint8  // STB_: 0 local, 1 global, 2 weak
	Section uint16 // SHN_: 0 undefined
}

const (
	shtSymtab  = 2
	shtDynsym  = 11
	symbolSize = 24

	dtHash    = 4
	dtStrtab  = 5
	dtSymtab  = 6
	dtRela    = 7
	dtRelasz  = 8
	dtStrsz   = 10
	dtRelrsz  = 35
	dtRelr    = 36
	dtGNUHash = 0x6ffffef5
)

// Symbols yields the entries of .symtab, or of .dynsym if dyn. Without section
// headers, .dynsym is found by PT_DYNAMIC. A damaged table yields the entries
// that are inside the image. Names may share their bytes, so that the names of
// a small image could fill the memory. Therefore nameRoom bounds them: a name
// beyond it is cut, and later symbols have none.
func (f *File) Symbols(dyn bool) iter.Seq[Symbol] {
	table, names := f.symbolTable(dyn)
	return func(yield func(Symbol) bool) {
		defer runtime.KeepAlive(f) // the table and the names are its bytes
		room := nameRoom(names)
		r := buf.At(table, 0)
		for r.Len() >= symbolSize {
			nameAt, info := r.U32(), r.U8()
			r.Skip(1)
			s := Symbol{Section: r.U16(), Type: info & 15, Bind: info >> 4}
			s.Value, s.Size = r.U64(), r.U64()
			s.Name = string(cstring(names, uint64(nameAt), min(room, maxName)))
			room -= len(s.Name)
			if !yield(s) {
				return
			}
		}
	}
}

// Exports reports whether the image defines a dynamic symbol.
func (f *File) Exports(name string) bool {
	for s := range f.Symbols(true) {
		if s.Name == name && s.Section != 0 {
			return true
		}
	}
	return false
}

// nameRoom is how many bytes the symbols' names may have together. Linkers let
// names share their ends: those of real tables have up to twice the table's bytes.
func nameRoom(names []byte) int { return 8*len(names) + 1<<16 }

func (f *File) symbolTable(dyn bool) (table, names []byte) {
	want := uint32(shtSymtab)
	if dyn {
		want = shtDynsym
	}
	for i := range f.sections {
		s := &f.sections[i]
		if s.typ != want {
			continue
		}
		table = f.upTo(s.off, s.size)
		if uint64(s.link) < uint64(len(f.sections)) {
			l := &f.sections[s.link]
			names = f.upTo(l.off, l.size)
		}
		return table, names
	}
	if dyn {
		return f.dynamicSymbols()
	}
	return nil, nil
}

// upTo returns at most size bytes at off: those that exist.
func (f *File) upTo(off, size uint64) []byte {
	n := uint64(len(f.data))
	if off > n {
		return nil
	}
	return f.data[off : off+min(size, n-off)]
}

// dynamicSymbols finds .dynsym and .dynstr by PT_DYNAMIC.
func (f *File) dynamicSymbols() (table, names []byte) {
	d := f.dynamic()
	table, ok := f.from(f.unrelocate(d.symtab))
	if !ok {
		return nil, nil
	}
	names, _ = f.from(f.unrelocate(d.strtab))
	if d.strsz < uint64(len(names)) {
		names = names[:d.strsz]
	}
	count := f.symbolCount(&d)
	if count <= uint64(len(table))/symbolSize {
		table = table[:count*symbolSize]
	}
	return table, names
}

type dynamic struct{ hash, gnuHash, strtab, symtab, strsz, rela, relasz, relr, relrsz uint64 }

func (f *File) dynamic() (d dynamic) {
	wanted := map[uint64]*uint64{dtHash: &d.hash, dtGNUHash: &d.gnuHash, dtStrtab: &d.strtab,
		dtSymtab: &d.symtab, dtStrsz: &d.strsz, dtRela: &d.rela, dtRelasz: &d.relasz, dtRelr: &d.relr,
		dtRelrsz: &d.relrsz}
	for i := range f.programs {
		p := &f.programs[i]
		if p.typ != ptDynamic {
			continue
		}
		b, _ := f.programBytes(p)
		for r := buf.At(b, 0); r.Len() >= 16; {
			tag, v := r.U64(), r.U64()
			if tag == 0 {
				return d
			}
			if to := wanted[tag]; to != nil {
				*to = v
			}
		}
	}
	return d
}

// unrelocate turns a pointer of PT_DYNAMIC into a virtual address: some dynamic
// loaders add the bias to the pointers of a mapped image.
func (f *File) unrelocate(addr uint64) uint64 {
	if _, ok := f.from(addr); !ok && f.mapped {
		return addr - f.bias
	}
	return addr
}

// symbolCount returns the number of dynamic symbols, which only the hash tables
// contain. Without them, the strings are taken to follow the symbols.
func (f *File) symbolCount(d *dynamic) uint64 {
	if b, ok := f.from(f.unrelocate(d.hash)); ok && d.hash != 0 {
		r := buf.At(b, 4)
		if n := uint64(r.U32()); r.OK() {
			return n
		}
	}
	if b, ok := f.from(f.unrelocate(d.gnuHash)); ok && d.gnuHash != 0 {
		return gnuHashCount(b)
	}
	if d.strtab > d.symtab {
		return (d.strtab - d.symtab) / symbolSize
	}
	return 0
}

// gnuHashCount returns the number of symbols by a GNU hash table: the last one
// ends the chain that starts last.
func gnuHashCount(b []byte) uint64 {
	r := buf.At(b, 0)
	buckets, first, bloom := uint64(r.U32()), uint64(r.U32()), uint64(r.U32())
	r.Skip(4 + bloom*8)
	last := uint64(0)
	for i := uint64(0); i < buckets && r.OK(); i++ {
		last = max(last, uint64(r.U32()))
	}
	if !r.OK() || last < first {
		return first
	}
	r.Skip((last - first) * 4)
	for r.Len() >= 4 { // a failed reader is empty
		last++
		if r.U32()&1 != 0 {
			break
		}
	}
	return last
}
