package elf

import (
	"bytes"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// readPrograms reads the program headers up to the first one outside the image.
func (f *File) readPrograms(h header) {
	if h.phnum == 0 || h.phoff == 0 {
		return
	}
	if h.phentsize < 56 {
		f.problem(f.bad("e_phentsize", 54, h.phentsize, "less than 56"))
		return
	}
	if h.phnum == 0xffff && !f.mapped { // PN_XNUM: the count is in section 0
		r := buf.At(f.data, h.shoff)
		r.Skip(44)
		if n := uint64(r.U32()); r.OK() && n != 0 {
			h.phnum = n
		}
	}
	f.programs = make([]program, 0, f.fitting(h.phoff, h.phnum, h.phentsize))
	for i := uint64(0); i < min(h.phnum, maxHeaders); i++ {
		at := h.phoff + i*h.phentsize
		p, ok := readProgram(f.data, at)
		if !ok {
			f.problem(f.bad("program header", at, i, "lies outside the image"))
			return
		}
		f.programs = append(f.programs, p)
		f.addSegment(p, at)
	}
}

// fitting returns how many of n headers of a size the image has room for, at most maxHeaders.
func (f *File) fitting(off, n, size uint64) uint64 {
	if off >= uint64(len(f.data)) {
		return 0
	}
	return min(n, maxHeaders, (uint64(len(f.data))-off)/size)
}

func readProgram(data []byte, at uint64) (p program, ok bool) {
	r := buf.At(data, at)
	p.typ, p.flags = r.U32(), r.U32()
	p.off, p.vaddr = r.U64(), r.U64()
	r.Skip(8)
	p.filesz, p.memsz, p.alignTo = r.U64(), r.U64(), r.U64()
	return p, r.OK()
}

// addSegment keeps a PT_LOAD whose range does not wrap.
func (f *File) addSegment(p program, at uint64) {
	if p.typ != ptLoad {
		return
	}
	if p.vaddr+p.memsz < p.vaddr || p.off+p.filesz < p.off {
		f.problem(f.bad("PT_LOAD", at, p.vaddr, "its range wraps"))
		return
	}
	f.segments = append(f.segments, Segment{p.vaddr, p.memsz, p.off, p.filesz, p.flags})
}

// readSections reads the section headers up to the first one outside the image.
func (f *File) readSections(h header) {
	if h.shoff == 0 {
		return
	}
	if h.shentsize < 64 {
		if h.shnum != 0 {
			f.problem(f.bad("e_shentsize", 58, h.shentsize, "less than 64"))
		}
		return
	}
	if zero, ok := readSection(f.data, h.shoff); ok {
		if h.shnum == 0 { // more than 65,279: the count is in section 0
			h.shnum = zero.size
		}
		if h.shstrndx == 0xffff {
			h.shstrndx = uint64(zero.link)
		}
	}
	f.sections = make([]sectionHeader, 0, f.fitting(h.shoff, h.shnum, h.shentsize))
	for i := uint64(0); i < min(h.shnum, maxHeaders); i++ {
		at := h.shoff + i*h.shentsize
		s, ok := readSection(f.data, at)
		if !ok {
			f.problem(f.bad("section header", at, i, "lies outside the image"))
			break
		}
		f.sections = append(f.sections, s)
	}
	f.nameSections(h.shstrndx)
}

func readSection(data []byte, at uint64) (s sectionHeader, ok bool) {
	r := buf.At(data, at)
	s.nameAt, s.typ = r.U32(), r.U32()
	s.flags, s.addr, s.off, s.size = r.U64(), r.U64(), r.U64(), r.U64()
	s.link, s.info = r.U32(), r.U32()
	s.addrAlign, s.entrySize = r.U64(), r.U64()
	return s, r.OK()
}

func (f *File) nameSections(index uint64) {
	if index >= uint64(len(f.sections)) {
		if len(f.sections) > 0 {
			f.problem(f.bad("e_shstrndx", 62, index, "no such section"))
		}
		return
	}
	names, ok := f.fileRange(f.sections[index].off, f.sections[index].size)
	if !ok {
		f.problem(f.bad("section names", f.sections[index].off,
			f.sections[index].size, "lie outside the image"))
		return
	}
	all := string(names[:min(len(names), maxSharedNames)])
	for i := range f.sections {
		at := uint64(f.sections[i].nameAt)
		if name := cstring(names, at, maxSectionName); at+uint64(len(name)) <= uint64(len(all)) {
			f.sections[i].name = all[at:][:len(name)]
		} else {
			f.sections[i].name = string(name)
		}
	}
}

// cstring returns the NUL-terminated string at off, nil outside b. A string
// longer than limit, or without its NUL, is cut.
func cstring(b []byte, off uint64, limit int) []byte {
	if off >= uint64(len(b)) {
		return nil
	}
	b = b[off:]
	b = b[:min(len(b), limit)]
	if n := bytes.IndexByte(b, 0); n >= 0 {
		b = b[:n]
	}
	return b
}

// Bounds of names, bytes. Names may share their bytes.
const (
	maxName        = 1 << 16
	maxSectionName = 256
	maxSharedNames = 1 << 14 // section names within this many bytes are parts of one Go string
)

// fileRange returns size bytes at a file offset.
func (f *File) fileRange(off, size uint64) ([]byte, bool) {
	n := uint64(len(f.data))
	if off > n || size > n-off {
		return nil, false
	}
	return f.data[off : off+size : off+size], true
}

// BytesAt returns the n bytes at a virtual address without copying them, if the
// file part of one segment contains them all. It allocates nothing.
func (f *File) BytesAt(vaddr uint64, n int) ([]byte, bool) {
	if n < 0 {
		return nil, false
	}
	b, ok := f.from(vaddr)
	if !ok || len(b) < n {
		return nil, false
	}
	return b[:n:n], true
}

// Tail returns at most max bytes from vaddr to the end of its segment's file
// part, or nil. It does not copy or allocate.
func (f *File) Tail(vaddr uint64, max int) []byte {
	b, _ := f.from(vaddr)
	if len(b) > max {
		b = b[:max]
	}
	return b
}

// from returns the bytes from vaddr to the end of its segment's file part.
func (f *File) from(vaddr uint64) ([]byte, bool) {
	for i := range f.segments {
		s := &f.segments[i]
		if off := vaddr - s.Vaddr; off < s.Filesz {
			return f.segmentBytes(s, off)
		}
	}
	return nil, false
}

func (f *File) segmentBytes(s *Segment, off uint64) ([]byte, bool) {
	start := s.Off
	if f.mapped {
		start = s.Vaddr - f.first
	}
	n := uint64(len(f.data))
	if start > n || off >= n-start {
		return nil, false
	}
	end := min(s.Filesz, n-start)
	return f.data[start+off : start+end : start+end], true
}

// programBytes returns the bytes that a program header covers.
func (f *File) programBytes(p *program) ([]byte, bool) {
	if f.mapped {
		return f.fileRange(p.vaddr-f.first, p.filesz)
	}
	return f.fileRange(p.off, p.filesz)
}
