package pdb

import (
	"cmp"
	"slices"
)

// Kinds of parts of a module's lines, and their sizes.
const (
	partLines   = 0xf2
	partFiles   = 0xf4
	lineHeader  = 12
	lineBlock   = 12
	lineEntry   = 8
	firstHidden = 0xf00f00 // lines of code that no source has begin here
	tableMagic  = 0xeffeeffe
)

// lines are the line tables of all modules.
type lines struct {
	runs  []run  // by rva
	names []byte // of files
}

// run is the lines of a function or of a part of it.
type run struct {
	rva, size uint32
	blocks    []byte
	files     []byte // checksums of the module's files
}

// Line returns the place in the source of the code at an address. file is "" if it is unknown.
func (f *File) Line(rva uint32) (file string, line int) {
	if f.lines == nil {
		f.lines = f.readLines()
	}
	i, found := slices.BinarySearchFunc(f.lines.runs, rva,
		func(r run, rva uint32) int { return cmp.Compare(r.rva, rva) })
	if !found {
		i--
	}
	if i < 0 || rva-f.lines.runs[i].rva >= f.lines.runs[i].size {
		return "", 0
	}
	return f.lines.find(&f.lines.runs[i], rva-f.lines.runs[i].rva)
}

// readLines finds the line tables. Those of damaged modules are left out.
func (f *File) readLines() *lines {
	l := &lines{}
	if at, ok := f.named["/names"]; ok {
		if b, err := f.c.stream(at, "names"); err == nil && len(b) >= 12 && le.Uint32(b) == tableMagic {
			l.names, _, _ = counted(b[8:], 1)
		}
	}
	for i := range f.modules {
		if f.modules[i].lines == 0 {
			continue
		}
		if _, b, err := f.module(&f.modules[i]); err == nil {
			f.parts(l, b)
		}
	}
	slices.SortStableFunc(l.runs, func(a, b run) int { return cmp.Compare(a.rva, b.rva) })
	return l
}

// parts reads the parts of a module's lines.
func (f *File) parts(l *lines, b []byte) {
	var files []byte
	first := len(l.runs)
	for len(b) >= 8 {
		kind := le.Uint32(b)
		part, rest, ok := counted(b[4:], 1)
		if !ok {
			break
		}
		b = rest[min(len(rest), (4-len(part)&3)&3):]
		switch {
		case kind == partFiles:
			files = part
		case kind == partLines && len(part) >= lineHeader:
			if rva, ok := f.rva(le.Uint16(part[4:]), le.Uint32(part)); ok {
				l.runs = append(l.runs, run{rva: rva, size: le.Uint32(part[8:]), blocks: part[lineHeader:]})
			}
		}
	}
	for i := range l.runs[first:] {
		l.runs[first+i].files = files
	}
}

// find returns the line of an offset: the last entry that does not begin behind it.
func (l *lines) find(r *run, offset uint32) (file string, line int) {
	best, source, ok := uint32(0), uint32(0), false
	for b := r.blocks; len(b) >= lineBlock; {
		n, size := uint64(le.Uint32(b[4:])), uint64(le.Uint32(b[8:]))
		if size < lineBlock+n*lineEntry || size > uint64(len(b)) {
			break
		}
		for e := b[lineBlock:][:n*lineEntry]; len(e) > 0; e = e[lineEntry:] {
			at, number := le.Uint32(e), le.Uint32(e[4:])&0xffffff
			if at <= offset && (!ok || at >= best) {
				best, source, line, ok = at, le.Uint32(b), int(number), true
			}
		}
		b = b[size:]
	}
	if line == 0 || line >= firstHidden || uint64(source)+4 > uint64(len(r.files)) {
		return "", 0
	}
	at := le.Uint32(r.files[source:])
	if uint64(at) >= uint64(len(l.names)) || l.names[at] == 0 {
		return "", 0
	}
	return text(l.names[at:]), line
}
