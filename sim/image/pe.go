package image

import (
	"encoding/binary"
	"fmt"
	"sort"
)

// A PE32+ image that is mapped as it stands on disk. Source: Microsoft, "PE
// format".

const (
	peHeaders   = 0x400
	peSignature = 0x80 // offset of "PE\0\0"
	peOptional  = peSignature + 4 + 20
	peSections  = peOptional + 112 + 16*8
	peAlign     = 0x1000 // of sections; files of 1:1 images have it too
	dirExport   = 0
	dirExcept   = 3
)

// peSection is one entry of the section table.
type peSection struct {
	name       string
	begin, end uint32
	flags      uint32
}

// writePE appends .xdata, .pdata and .edata to the code in im.File and writes
// the headers before it.
func writePE(im *Image) error {
	sections := []peSection{{".text", im.Text[0], im.Text[1], 0x60000020}}
	base := align(im.Text[1], peAlign)
	var x []byte
	xdata := func(b []byte) uint32 {
		for len(x)%4 != 0 {
			x = append(x, 0)
		}
		x = append(x, b...)
		return base + uint32(len(x)-len(b))
	}
	write := pdataAMD64
	if im.Arch == ARM64 {
		write = pdataARM64
	}
	pdata, err := write(im, xdata)
	if err != nil {
		return err
	}
	sections = im.section(sections, ".xdata", x)
	sections = im.section(sections, ".pdata", pdata)
	except := sections[len(sections)-1]
	if len(pdata) == 0 {
		except = peSection{}
	}
	edata := im.exports(align(uint32(len(im.File)), peAlign))
	sections = im.section(sections, ".edata", edata)
	export := sections[len(sections)-1]
	im.pad(peAlign)
	im.peHeader(sections, export, except, uint32(len(pdata)))
	return nil
}

// section appends a section of read-only data, if there is any.
func (m *Image) section(to []peSection, name string, b []byte) []peSection {
	if len(b) == 0 {
		return to
	}
	m.pad(peAlign)
	at := uint32(len(m.File))
	m.File = append(m.File, b...)
	return append(to, peSection{name, at, at + uint32(len(b)), 0x40000040})
}

func (m *Image) pad(to uint32) {
	m.File = append(m.File, make([]byte, align(uint32(len(m.File)), to)-uint32(len(m.File)))...)
}

// peHeader writes the DOS stub, the COFF and optional headers and the sections.
func (m *Image) peHeader(sections []peSection, export, except peSection, pdata uint32) {
	h := m.File[:peHeaders]
	u16 := func(at int, v uint16) { binary.LittleEndian.PutUint16(h[at:], v) }
	u32 := func(at int, v uint32) { binary.LittleEndian.PutUint32(h[at:], v) }
	copy(h, "MZ")
	u32(0x3c, peSignature)
	copy(h[peSignature:], "PE\x00\x00")
	machine := uint16(0x8664)
	if m.Arch == ARM64 {
		machine = 0xaa64
	}
	u16(peSignature+4, machine)
	u16(peSignature+6, uint16(len(sections)))
	u16(peSignature+20, peSections-peOptional)
	u16(peSignature+22, 0x2022) // executable, large addresses, DLL
	u16(peOptional, 0x20b)
	binary.LittleEndian.PutUint64(h[peOptional+24:], m.Base)
	u32(peOptional+32, peAlign)
	u32(peOptional+36, peAlign)
	u16(peOptional+48, 6) // subsystem version
	u32(peOptional+56, uint32(len(m.File)))
	u32(peOptional+60, peHeaders)
	u16(peOptional+68, 3) // console
	u32(peOptional+108, 16)
	u32(peOptional+112+8*dirExport, export.begin)
	u32(peOptional+112+8*dirExport+4, export.end-export.begin)
	if pdata != 0 {
		u32(peOptional+112+8*dirExcept, except.begin)
		u32(peOptional+112+8*dirExcept+4, pdata)
	}
	for i, s := range sections {
		at := peSections + 40*i
		copy(h[at:at+8], s.name)
		u32(at+8, s.end-s.begin)
		u32(at+12, s.begin)
		u32(at+16, s.end-s.begin)
		u32(at+20, s.begin)
		u32(at+36, s.flags)
	}
}

// exports writes an export directory of every function's name, to stand at RVA
// at. Names are sorted, as the loader's search wants.
func (m *Image) exports(at uint32) []byte {
	order := make([]int, len(m.Funcs))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return m.Funcs[order[i]].Name < m.Funcs[order[j]].Name })
	n := uint32(len(m.Funcs))
	funcs := uint32(40)
	names, ordinals := funcs+4*n, funcs+8*n
	b := make([]byte, ordinals+2*n)
	put := func(off, v uint32) { binary.LittleEndian.PutUint32(b[off:], v) }
	str := func(s string) uint32 {
		b = append(append(b, s...), 0)
		return at + uint32(len(b)-len(s)-1)
	}
	put(12, str(m.Name))
	put(16, 1) // ordinal base
	put(20, n)
	put(24, n)
	put(28, at+funcs)
	put(32, at+names)
	put(36, at+ordinals)
	for k, i := range order {
		put(funcs+4*uint32(i), m.Funcs[i].RVA)
		put(names+4*uint32(k), str(m.Funcs[i].Name))
		binary.LittleEndian.PutUint16(b[ordinals+2*uint32(k):], uint16(i))
	}
	return b
}

// errFunc is an error about a function.
func errFunc(f *Func, format string, args ...any) error {
	return fmt.Errorf("image: %s: "+format, append([]any{f.Name}, args...)...)
}
