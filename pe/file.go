package pe

import (
	"errors"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/wholefile"
	"github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/pe/rva"
)

// MaxFile is the size in bytes of the largest file that Open reads: the whole
// file is read into memory. The largest images (programs with a .NET runtime in
// them) have a few hundred MiB.
const MaxFile = 1 << 30

// File is a parsed PE image. It is immutable: all methods are safe for
// concurrent use.
type File struct {
	Header
	name     string
	sections []Section
	runs     rva.Blocks
	pdata    []byte      // the bytes of the exception directory
	amd64    amd64.Table // the exception directory of an x64 image
	arm64    arm64.Table // the exception directory of an ARM64 image
	raw      []byte      // the whole file, nil for a mapped image
	strings  []byte      // the COFF string table
	problems []error     // damage that leaves the rest usable
}

// Section is one entry of the section table.
type Section struct {
	Name            string
	RVA             uint32
	VirtualSize     uint32 // bytes in memory
	Offset          uint32 // in the file
	Size            uint32 // bytes in the file
	Characteristics uint32
}

// Executable reports whether the section holds code.
func (s *Section) Executable() bool { return s.Characteristics&0x20000000 != 0 }

// Open reads and parses the PE file at path. A file that is larger than MaxFile
// (TooLarge) or not regular (NotRegular) is refused with a *FormatError before
// it is read.
func Open(path string) (*File, error) {
	data, err := wholefile.Read(path, MaxFile)
	var refused *wholefile.Error
	if errors.As(err, &refused) {
		return nil, &FormatError{path, "file", 0, refused.Value, refusals[refused.Reason]}
	}
	if err != nil {
		return nil, err
	}
	return New(data, path)
}

// refusals maps the reasons of package wholefile to this package's.
var refusals = [...]Reason{wholefile.NotRegular: NotRegular, wholefile.TooLarge: TooLarge}

// New parses the bytes of a PE file. The error is a *FormatError and the File
// nil if the headers are unusable; lesser damage is in Problems. data is kept
// and must not be changed.
func New(data []byte, name string) (*File, error) {
	f := &File{name: name, raw: data, runs: rva.Sort([]Block{{RVA: 0, Data: data}})}
	var err error
	if f.Header, err = ReadHeader(f.BytesAt, name); err != nil {
		return nil, err
	}
	f.readStrings()
	if err := f.readSections(); err != nil {
		return nil, err
	}
	f.runs = f.fileRuns(data)
	f.load()
	return f, nil
}

// FromMemory parses an image as it is mapped: data[0] is the image's first byte
// in memory. The bytes may end before SizeOfImage. Errors are as in New.
func FromMemory(data []byte, name string) (*File, error) {
	return FromMemoryBlocks([]Block{{RVA: 0, Data: data}}, name)
}

// FromMemoryBlocks is FromMemory for a dump with holes. A block at RVA 0 must
// hold the headers.
func FromMemoryBlocks(blocks []Block, name string) (*File, error) {
	f := &File{name: name, runs: rva.Sort(blocks)}
	var err error
	if f.Header, err = ReadHeader(f.BytesAt, name); err != nil {
		return nil, err
	}
	if err := f.readSections(); err != nil {
		return nil, err
	}
	f.load()
	return f, nil
}

// FromBlocks makes an image without headers out of its exception directory and
// some blocks of bytes: for replaying recorded unwind data.
func FromBlocks(machine uint16, pdata []byte, blocks []Block) *File {
	f := &File{name: "blocks", Header: Header{machine: machine, wide: true},
		pdata: pdata, runs: rva.Sort(blocks)}
	f.size = f.runs.End()
	f.index()
	return f
}

// load finds the exception directory once the runs are known.
func (f *File) load() {
	if d := f.dirs[dirException]; d.size != 0 {
		f.pdata = f.Tail(d.rva, int(d.size))
		if uint32(len(f.pdata)) < d.size {
			f.problem("exception directory", uint64(d.rva), uint64(d.size), Outside)
		}
	}
	f.index()
}

// index prepares the exception directory for look-ups.
func (f *File) index() {
	arch, unix := f.Arch()
	switch arch {
	case context.ArchAMD64:
		f.amd64 = amd64.New(f.pdata, f.runs, unix)
		f.amd64.SetSize(f.size)
	case context.ArchARM64:
		f.arm64 = arm64.New(f.pdata, f.runs)
	}
}

func (f *File) problem(structure string, offset, value uint64, why Reason) {
	if len(f.problems) < maxProblems {
		f.problems = append(f.problems, &FormatError{f.name, structure, offset, value, why})
	}
}

// maxProblems bounds the stored problems of one file.
const maxProblems = 64

// Name is the path or name that the image was opened with.
func (f *File) Name() string { return f.name }

// Problems lists damage that leaves the rest of the image usable.
func (f *File) Problems() []error { return f.problems }

// Sections returns the section table, which must not be changed.
func (f *File) Sections() []Section { return f.sections }

// Section returns the section of a name, or nil.
func (f *File) Section(name string) *Section {
	for i := range f.sections {
		if f.sections[i].Name == name {
			return &f.sections[i]
		}
	}
	return nil
}

// ExceptionDirectory returns the image's own table of RUNTIME_FUNCTIONs, or nil.
// It must not be changed.
func (f *File) ExceptionDirectory() []byte { return f.pdata }

// AMD64 returns the image's x64 functions, none if it is of another
// architecture.
func (f *File) AMD64() *amd64.Table { return &f.amd64 }

// ARM64 returns the image's ARM64 functions, none if it is of another
// architecture.
func (f *File) ARM64() *arm64.Table { return &f.arm64 }
