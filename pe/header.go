package pe

import (
	"strconv"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/pe/rva"
)

// Machine values of the COFF header.
const (
	MachineAMD64 = 0x8664
	MachineARM64 = 0xaa64
)

// unixMasks are XORed into the machine of the CLR's precompiled images for
// systems other than Windows: Linux, Apple, FreeBSD, NetBSD, illumos.
// Source: dotnet/runtime src/coreclr/inc/pedecoder.h.
var unixMasks = [...]uint16{0x7b79, 0x4644, 0xadc4, 0x1993, 0x1992}

// Arch returns the architecture of the image's code, and whether the image is
// one the CLR's compiler made for a system other than Windows.
func (h *Header) Arch() (a context.Arch, unix bool) {
	if a := archOf(h.machine); a != context.NoArch {
		return a, false
	}
	for _, m := range unixMasks {
		if a := archOf(h.machine ^ m); a != context.NoArch {
			return a, true
		}
	}
	return context.NoArch, false
}

func archOf(machine uint16) context.Arch {
	switch machine {
	case MachineAMD64:
		return context.ArchAMD64
	case MachineARM64:
		return context.ArchARM64
	}
	return context.NoArch
}

// Data directories that are read.
const (
	dirExport    = 0
	dirImport    = 1
	dirResource  = 2
	dirException = 3
	dirDebug     = 6
	dirCLR       = 14
	dirCount     = 16
)

type directory struct{ rva, size uint32 }

// Read returns n bytes at an RVA of an image: of a file, of a mapped image, or of
// a process's memory. The bytes are valid until the next call.
type Read func(rva uint32, n int) ([]byte, bool)

// Header is the decoded headers of an image.
type Header struct {
	machine uint16
	wide    bool   // PE32+
	stamp   uint32 // TimeDateStamp
	base    uint64
	size    uint32
	dirs    [dirCount]directory

	sections     uint64 // offset of the section table
	sectionCount int
	headersSize  uint32
	symbols      uint32 // file offset of the COFF symbol table
	symbolCount  uint32
}

// Machine is the COFF header's machine field. See Arch.
func (h *Header) Machine() uint16 { return h.machine }

// Stamp is the COFF header's time stamp, which differs between two builds of one
// image.
func (h *Header) Stamp() uint32 { return h.stamp }

// ImageBase is the preferred load address of the image's first byte.
func (h *Header) ImageBase() uint64 { return h.base }

// SizeOfImage is the image's size in memory, bytes.
func (h *Header) SizeOfImage() uint32 { return h.size }

// CLRHeader reports whether the image has a header of managed code: an assembly,
// or an image with both kinds of code.
func (h *Header) CLRHeader() bool { return h.dirs[dirCLR].rva != 0 && h.dirs[dirCLR].size != 0 }

// CLR is the range of the header of managed code (ECMA-335 II.25.3.3). Its size
// is 0 without one.
func (h *Header) CLR() (rva, size uint32) {
	d := h.dirs[dirCLR]
	return d.rva, d.size
}

// Exceptions is the range of the exception directory. Its size is 0 without one.
func (h *Header) Exceptions() (rva, size uint32) {
	d := h.dirs[dirException]
	return d.rva, d.size
}

// Debug is the range of the debug directory. Its size is 0 without one.
func (h *Header) Debug() (rva, size uint32) {
	d := h.dirs[dirDebug]
	return d.rva, d.size
}

// ReadHeader reads an image's headers by calls of read. name is the image's, for
// errors. The error is a *FormatError.
func ReadHeader(read Read, name string) (h Header, err error) {
	r := headerReader{read, name}
	dos, err := r.need("DOS header", 0, 64)
	if err != nil {
		return h, err
	}
	if dos[0] != 'M' || dos[1] != 'Z' {
		return h, &FormatError{name, "DOS header", 0, uint64(u16(dos)), NotPE}
	}
	at := uint64(u32(dos[0x3c:]))
	coff, err := r.need("COFF header", at, 24)
	if err != nil {
		return h, err
	}
	if u32(coff) != 'P'|'E'<<8 {
		return h, &FormatError{name, "PE signature", at, uint64(u32(coff)), NotPE}
	}
	h.machine, h.sectionCount, h.stamp = u16(coff[4:]), int(u16(coff[6:])), u32(coff[8:])
	h.symbols, h.symbolCount = u32(coff[12:]), u32(coff[16:])
	size := u16(coff[20:])
	h.sections = at + 24 + uint64(size)
	opt, err := r.need("optional header", at+24, int(size))
	if err != nil {
		return h, err
	}
	if why := h.optional(opt); why != OK {
		return h, &FormatError{name, "optional header", at + 24, uint64(len(opt)), why}
	}
	return h, nil
}

// headerReader reads bytes of an image's headers.
type headerReader struct {
	read Read
	name string
}

// need returns n bytes of the headers.
func (r *headerReader) need(structure string, at uint64, n int) ([]byte, error) {
	if at < 1<<32 {
		if b, ok := r.read(uint32(at), n); ok {
			return b, nil
		}
	}
	return nil, &FormatError{r.name, structure, at, uint64(n), Short}
}

// optional reads the optional header: PE32 (magic 10b) or PE32+ (20b).
func (h *Header) optional(b []byte) Reason {
	fixed := 96
	if len(b) >= 2 && u16(b) == 0x20b {
		h.wide, fixed = true, 112
	} else if len(b) < 2 || u16(b) != 0x10b {
		return NotOptional
	}
	if len(b) < fixed {
		return Short
	}
	h.base = uint64(u32(b[28:]))
	if h.wide {
		h.base = u64(b[24:])
	}
	h.size, h.headersSize = u32(b[56:]), u32(b[60:])
	n := min(uint64(u32(b[fixed-4:])), dirCount, uint64(len(b)-fixed)/8)
	for i := range h.dirs[:n] {
		d := b[fixed+8*i:]
		h.dirs[i] = directory{u32(d), u32(d[4:])}
	}
	return OK
}

const sectionSize = 40

// ReadSections reads the section table of the image with header h by calls of
// read. Names are cut at eight bytes. The error is a *FormatError.
func (h *Header) ReadSections(read Read, name string) ([]Section, error) {
	r := headerReader{read, name}
	b, err := r.need("section table", h.sections, h.sectionCount*sectionSize)
	if err != nil {
		return nil, err
	}
	sections := make([]Section, h.sectionCount)
	for i := range sections {
		s := b[i*sectionSize:]
		sections[i] = Section{
			Name: cString(s[:8]), VirtualSize: u32(s[8:]), RVA: u32(s[12:]),
			Size: u32(s[16:]), Offset: u32(s[20:]), Characteristics: u32(s[36:]),
		}
	}
	return sections, nil
}

// readSections is ReadSections with the names of the string table.
func (f *File) readSections() (err error) {
	f.sections, err = f.ReadSections(f.BytesAt, f.name)
	for i := range f.sections {
		f.sections[i].Name = f.longName(f.sections[i].Name)
	}
	return err
}

// readStrings finds the COFF string table, which follows the symbol table.
func (f *File) readStrings() {
	h := &f.Header
	at := uint64(h.symbols) + 18*uint64(h.symbolCount)
	if h.symbols == 0 || at+4 > uint64(len(f.raw)) {
		return
	}
	b := f.raw[at:]
	f.strings = b[:min(uint64(u32(b)), uint64(len(b)))]
}

// longName resolves a section's name: "/" and a decimal number is the offset of
// a longer name in the string table.
func (f *File) longName(name string) string {
	if len(name) < 2 || name[0] != '/' {
		return name
	}
	if off, err := strconv.ParseUint(name[1:], 10, 32); err == nil && off < uint64(len(f.strings)) {
		return cString(f.strings[off:][:min(uint64(len(f.strings))-off, maxSectionName)])
	}
	return name
}

// maxName bounds names read from an image, bytes.
const maxName = 4096

// maxSectionName bounds long names of sections, which may share their bytes.
const maxSectionName = 256

// cString is b up to its first NUL.
func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

const pageSize = 4096

// fileRuns maps a file's headers and sections to RVAs. Bytes past a section's
// virtual size are mapped up to the page's end, as the loader does.
func (f *File) fileRuns(data []byte) rva.Blocks {
	blocks := make([]Block, 0, len(f.sections)+1)
	blocks = append(blocks, Block{RVA: 0, Data: data[:min(uint64(f.headersSize), uint64(len(data)))]})
	for i := range f.sections {
		s := &f.sections[i]
		n := uint64(s.Size)
		if s.VirtualSize != 0 {
			n = min(n, (uint64(s.VirtualSize)+pageSize-1)&^(pageSize-1))
		}
		off := min(uint64(s.Offset), uint64(len(data)))
		if room := uint64(len(data)) - off; n > room {
			f.problem("section "+s.Name, uint64(s.RVA), n, Short)
			n = room
		}
		blocks = append(blocks, Block{RVA: s.RVA, Data: data[off : off+n]})
	}
	return rva.Sort(blocks)
}
