// Package elf reads 64-bit little-endian ELF images of x86-64 and AArch64: what
// is mapped where, the build id, symbols, and where the call frame information
// is. An image is a file's bytes or memory as mapped (a vdso, a dump).
//
// Sources: System V gABI chapters 4 and 5 (headers, sections, compression);
// LSB Core (PT_GNU_EH_FRAME); GNU binutils' conventions for build id notes and
// .zdebug_ sections.
//
// Glossary. Virtual address: an address as the image itself counts it; the
// loader adds a bias. Segment: a program header of type PT_LOAD.
//
// Strategy: only the file header must be right. Every other part is checked
// when it is read, and a damaged part (named in Problems) does not lose the
// rest. No size read from the image is allocated before it is checked.
//
// Known gaps: 32-bit and big-endian images; relocatable object files (Problems
// names them, since their addresses are not final); Open reads the whole file
// into memory, since a mapped file that is truncated faults.
package elf

import (
	"errors"
	"fmt"
	"sync"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/buf"
	"github.com/seedwalk/seedwalk/internal/wholefile"
)

// FormatError describes what is wrong with one structure of an image.
type FormatError struct {
	Name      string // of the image
	Structure string
	Offset    uint64 // in bytes from the image's start
	Value     uint64 // what was found there
	Msg       string
	Err       error // the cause, if there is one: buf.ErrTooLarge or a *wholefile.Error, for example
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: %s at offset 0x%x: %s (value 0x%x)", e.Name,
		e.Structure, e.Offset, e.Msg, e.Value)
}

// Unwrap returns Err, for errors.Is.
func (e *FormatError) Unwrap() error { return e.Err }

// ErrNoSection means that an image has no section of a name, or none with bytes.
var ErrNoSection = errors.New("no such section")

// Segment is one PT_LOAD program header.
type Segment struct {
	Vaddr, Memsz uint64
	Off, Filesz  uint64
	Flags        uint32 // PF_X 1, PF_W 2, PF_R 4
}

// Executable reports whether code may run in the segment.
func (s *Segment) Executable() bool { return s.Flags&1 != 0 }

// Program header types used here.
const (
	ptLoad       = 1
	ptDynamic    = 2
	ptNote       = 4
	ptTLS        = 7
	ptGNUEHFrame = 0x6474e550
	maxHeaders   = 1 << 16
)

// program is a program header.
type program struct {
	typ, flags                         uint32
	off, vaddr, filesz, memsz, alignTo uint64
}

// sectionHeader is a section header with its name resolved.
type sectionHeader struct {
	name                   string
	nameAt, typ            uint32
	flags, addr, off, size uint64
	link, info             uint32
	addrAlign, entrySize   uint64
}

// File is a parsed image. Any number of goroutines may use it. It keeps the
// bytes that New or FromMemory got.
type File struct {
	name       string
	data       []byte
	owner      *wholefile.Mapping // of data; nil = data is memory of Go
	mapped     bool               // data is laid out as in memory
	first      uint64             // if mapped: virtual address of data[0]
	bias       uint64             // if mapped: mapped address minus virtual address
	arch       context.Arch
	typ        uint16
	entry      uint64
	programs   []program
	segments   []Segment
	sections   []sectionHeader
	buildID    string
	linkedByGo bool
	notes      int // number of notes read so far
	problems   []error

	expanding sync.Mutex
	expanded  uint64                  // bytes that charged sections expand to
	charged   map[*sectionHeader]bool // sections that have been expanded once
}

// New parses the bytes of an ELF file. If the file header is unusable, the error is a *FormatError and the
// File nil. Lesser damage, and a relocatable object file, are in Problems.
func New(data []byte, name string) (*File, error) {
	f := &File{name: name, data: data}
	h, err := f.header()
	if err != nil {
		return nil, err
	}
	if f.typ == typeRelocatable {
		f.problem(f.bad("e_type", 16, uint64(f.typ),
			"a relocatable object file: it is not linked, so its addresses and its unwind data are not final"))
	}
	f.readPrograms(h)
	f.readSections(h)
	f.readNotes()
	return f, nil
}

// FromMemory parses an image as it is mapped: data[0] is at address base and
// begins the ELF header. Section headers are not read. Errors are as in New.
func FromMemory(data []byte, base uint64, name string) (*File, error) {
	f := &File{name: name, data: data, mapped: true}
	h, err := f.header()
	if err != nil {
		return nil, err
	}
	f.readPrograms(h)
	f.first = f.firstAddress()
	f.bias = base - f.first
	f.readNotes()
	return f, nil
}

// firstAddress is the virtual address of the ELF header.
func (f *File) firstAddress() uint64 {
	for i := range f.segments {
		if f.segments[i].Off == 0 {
			return f.segments[i].Vaddr
		}
	}
	if len(f.segments) > 0 {
		return f.segments[0].Vaddr - f.segments[0].Off
	}
	return 0
}

func (f *File) bad(structure string, off, value uint64, msg string) *FormatError {
	return &FormatError{Name: f.name, Structure: structure, Offset: off, Value: value, Msg: msg}
}

const (
	typeRelocatable = 1 // ET_REL
	typeShared      = 3 // ET_DYN
)

// maxProblems bounds the stored problems of one image.
const maxProblems = 64

func (f *File) problem(err error) {
	if len(f.problems) < maxProblems {
		f.problems = append(f.problems, err)
	}
}

// header is the part of the file header that locates the other headers.
type header struct {
	phoff, shoff               uint64
	phentsize, phnum           uint64
	shentsize, shnum, shstrndx uint64
}

func (f *File) header() (h header, err error) {
	r := buf.At(f.data, 0)
	magic := r.U32()
	class, order := r.U8(), r.U8()
	r.Skip(10)
	f.typ = r.U16()
	machine := r.U16()
	r.Skip(4)
	f.entry, h.phoff, h.shoff = r.U64(), r.U64(), r.U64()
	r.Skip(6)
	h.phentsize, h.phnum = uint64(r.U16()), uint64(r.U16())
	h.shentsize, h.shnum, h.shstrndx = uint64(r.U16()), uint64(r.U16()), uint64(r.U16())
	switch {
	case len(f.data) < 4 || magic != 0x464c457f:
		return h, f.bad("ELF header", 0, uint64(magic), "not an ELF image")
	case !r.OK():
		return h, f.bad("ELF header", 0, uint64(len(f.data)), "truncated")
	case class != 2:
		return h, f.bad("EI_CLASS", 4, uint64(class), "not a 64-bit image")
	case order != 1:
		return h, f.bad("EI_DATA", 5, uint64(order), "not little-endian")
	}
	switch machine {
	case 62:
		f.arch = context.ArchAMD64
	case 183:
		f.arch = context.ArchARM64
	default:
		return h, f.bad("e_machine", 18, uint64(machine), "neither x86-64 nor AArch64")
	}
	return h, nil
}

// Name is the name given to New, FromMemory or Open.
func (f *File) Name() string { return f.name }

// Arch is the image's machine.
func (f *File) Arch() context.Arch { return f.arch }

// Entry is the virtual address of the image's entry point; 0 if it has none.
func (f *File) Entry() uint64 { return f.entry }

// Shared reports whether the image is a library or a position-independent program.
func (f *File) Shared() bool { return f.typ == typeShared }

// TLS is the size in bytes of the image's thread-local storage in each thread.
func (f *File) TLS() (size uint64) {
	for i := range f.programs {
		if f.programs[i].typ == ptTLS {
			size = f.programs[i].memsz
		}
	}
	return size
}

// Bias is the mapped address minus the virtual address of an image from memory,
// 0 for one from a file.
func (f *File) Bias() uint64 { return f.bias }

// BuildID is the GNU build id in hex, or "".
func (f *File) BuildID() string { return f.buildID }

// Go reports whether the image contains Go code with its runtime: a program or a library
// (c-shared, plugin). Go's linker marks its output with a note, which stripping keeps.
func (f *File) Go() bool { return f.linkedByGo }

// Segments returns the PT_LOAD program headers in the order of the image. The
// caller must not change them.
func (f *File) Segments() []Segment { return f.segments }

// Problems lists the damage in an image that could be read nevertheless. The first one says so if the image
// is a relocatable object file.
func (f *File) Problems() []error { return f.problems }
