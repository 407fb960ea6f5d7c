package fuzz

import (
	"testing"

	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
)

// wholePEs are the seeds and, where there is one, a small DLL of this machine.
func wholePEs(t testing.TB) (ours, hosts []*whole) {
	for _, im := range sorted(seedImages(t)) {
		ours = append(ours, newWholePE("seed", im.file))
	}
	for _, path := range []string{"/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/version.dll", "/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/fltlib.dll"} {
		if b := hostFile(path, 256<<10); b != nil {
			hosts = append(hosts, newWholePE(path, b))
		}
	}
	return ours, hosts
}

// peLayout finds the file's bytes at an RVA by its undamaged headers.
type peLayout struct {
	fieldList
	sections, count int
}

func (l *peLayout) offset(rva int) int {
	for i := range l.count {
		s := l.sections + 40*i
		if at := rva - l.u32(s+12); at >= 0 && at < l.u32(s+16) {
			return l.u32(s+20) + at
		}
	}
	return -1
}

func newWholePE(name string, b []byte) *whole {
	l := &peLayout{fieldList: fieldList{data: b}}
	head := l.u32(0x3c)
	l.add(0x3c, 4)
	l.add(head+4, 2, 2, 4, 4, 4, 2, 2)
	opt := head + 24
	l.count, l.sections = l.u16(head+6), opt+l.u16(head+20)
	l.add(opt, 2)
	l.add(opt+24, 8)
	l.add(opt+56, 4, 4)
	l.every(opt+108, 1+2*16, 4)
	for i := range l.count {
		l.add(l.sections+40*i, 8, 4, 4, 4, 4)
	}
	directory := func(i int) (at, size int) { return l.offset(l.u32(opt + 112 + 8*i)), l.u32(opt + 116 + 8*i) }
	for i, n := range [...]int{0: 10, 1: 20, 2: 40, 6: 14} { // words of exports, imports, resources, debug
		if at, size := directory(i); at >= 0 && size != 0 && n != 0 {
			l.every(at, n, 4)
			l.tables(i, at)
		}
	}
	if at, size := directory(3); at >= 0 {
		l.functions(at, size, l.u16(head+4) == pe.MachineARM64)
	}
	return &whole{name, b, l.list}
}

// tables lists what an export or import directory leads to.
func (l *peLayout) tables(directory, at int) {
	switch directory {
	case 0:
		for _, table := range []int{28, 32, 36} {
			l.every(l.offset(l.u32(at+table)), min(l.u32(at+24), someRecords), 4)
		}
	case 1:
		l.every(l.offset(l.u32(at)), 16, 8)
	}
}

// functions lists entries of the exception directory and the unwind information
// they lead to.
func (l *peLayout) functions(at, size int, arm bool) {
	entry := peamd64.EntrySize
	if arm {
		entry = pearm64.EntrySize
	}
	for i := range min(size/entry, someRecords) {
		l.every(at+i*entry, entry/4, 4)
		word := l.u32(at + i*entry + entry - 4)
		if !arm || word&3 == 0 {
			l.every(l.offset(word&^3), 24, 1)
		}
	}
}

// FuzzWholePE edits the fields of whole images, and does with them what FuzzPE
// does with any bytes.
func FuzzWholePE(f *testing.F) {
	ours, hosts := wholePEs(f)
	scripts(ours, func(file uint8, script []byte) { f.Add(file, script, uint32(0x1010)) })
	scripts(hosts, func(file uint8, script []byte) { f.Add(hostFileAt+file, script, uint32(0x1010)) })
	w := newWalkers()
	f.Fuzz(func(t *testing.T, file uint8, script []byte, rva uint32) {
		data := choose(ours, hosts, file).edit(script)
		if im, err := pe.FromMemory(data, "raw"); err == nil {
			exerciseImage(t, w, im, len(data), rva)
		}
		if im, err := pe.New(data, "whole"); err == nil {
			exerciseImage(t, w, im, len(data), rva)
		}
	})
}
