package pdb

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/seedwalk/seedwalk/internal/wholefile"
)

// MaxFile is the size of the largest file that Open reads, bytes.
const MaxFile = 1 << 30

// Numbers of streams, versions, and sizes of records.
const (
	streamInfo  = 1
	streamDBI   = 3
	noStream    = 0xffff
	infoVersion = 20000404
	dbiVersion  = 19990903
	dbiSize     = 64
	moduleSize  = 64 // before its two names
	sectionSize = 40
)

// Indices in the list of debug streams.
const (
	debugOmapFrom = 4
	debugSections = 5
)

// File is a program database. It is not safe for concurrent use.
type File struct {
	c        container
	guid     [16]byte
	age      uint32
	named    map[string]uint32 // streams by name
	modules  []object
	records  uint32 // stream with the public symbols
	sections []section
	lines    *lines // nil = not read yet
}

// object describes the part of the image that comes from one object file.
type object struct {
	stream              uint32
	symbols, c11, lines uint32 // bytes in the stream, in this order
}

// section is a part of the image.
type section struct {
	rva, size uint32
	code      bool
}

// Open reads the file at path. Errors about its content are of type *Error.
func Open(path string) (*File, error) {
	data, err := wholefile.Read(path, MaxFile)
	var refused *wholefile.Error
	if errors.As(err, &refused) && refused.Reason == wholefile.TooLarge {
		return nil, &Error{path, "file", uint64(refused.Value), TooLarge}
	}
	if err != nil {
		return nil, err
	}
	return New(data, path)
}

// New reads the headers of a file. The error is an *Error. data is kept and must not be changed.
func New(data []byte, name string) (*File, error) {
	f := &File{c: container{name: name, data: data}}
	if err := f.c.open(); err != nil {
		return nil, err
	}
	if err := f.info(); err != nil {
		return nil, err
	}
	if err := f.dbi(); err != nil {
		return nil, err
	}
	return f, nil
}

// ID returns GUID and age as symbol servers and pe.DebugID write them.
func (f *File) ID() string {
	g := f.guid[:]
	return fmt.Sprintf("%08X%04X%04X%X%X", le.Uint32(g), le.Uint16(g[4:]), le.Uint16(g[6:]), g[8:], f.age)
}

// info reads the GUID and the names of streams. The age in it counts changes by tools; the
// image has that of the DBI stream.
func (f *File) info() error {
	b, err := f.c.stream(streamInfo, "info stream")
	if err != nil {
		return err
	}
	if len(b) < 28 {
		return f.c.fail("info stream", uint64(len(b)), Truncated)
	}
	if v := le.Uint32(b); v < infoVersion {
		return f.c.fail("info stream's version", uint64(v), BadVersion)
	}
	copy(f.guid[:], b[12:])
	f.named = namedStreams(b[28:])
	return nil
}

// namedStreams reads the hash table of names: the names, the number of entries, the capacity, bits of
// used and of deleted entries, and an offset and a stream for each. A damaged one names fewer.
func namedStreams(b []byte) map[string]uint32 {
	out := map[string]uint32{}
	names, b, ok := counted(b, 1)
	if !ok || len(b) < 8 {
		return out
	}
	b = b[8:]
	for range 2 {
		if _, b, ok = counted(b, 4); !ok {
			return out
		}
	}
	for ; len(b) >= 8; b = b[8:] {
		if at := le.Uint32(b); uint64(at) < uint64(len(names)) {
			out[text(names[at:])] = le.Uint32(b[4:])
		}
	}
	return out
}

// counted cuts off a number and that many items of size bytes.
func counted(b []byte, size uint64) (items, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := uint64(le.Uint32(b)) * size
	if b = b[4:]; n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// text is the bytes before the first zero.
func text(b []byte) string {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b[:min(len(b), maxName)])
}

// maxName bounds names, bytes. A record has at most 64 KiB.
const maxName = 1 << 12

// dbi reads what the linker wrote: modules, and where symbols and sections are.
func (f *File) dbi() error {
	b, err := f.c.stream(streamDBI, "DBI stream")
	if err != nil {
		return err
	}
	if len(b) < dbiSize {
		return f.c.fail("DBI stream", uint64(len(b)), Truncated)
	}
	if v := le.Uint32(b[4:]); v != dbiVersion {
		return f.c.fail("DBI stream's version", uint64(v), BadVersion)
	}
	f.age, f.records = le.Uint32(b[8:]), uint32(le.Uint16(b[20:]))
	rest, parts := b[dbiSize:], [7][]byte{}
	for i, at := range [...]int{24, 28, 32, 36, 40, 52, 48} { // in the order of the parts
		n := uint64(le.Uint32(b[at:]))
		if n > uint64(len(rest)) {
			return f.c.fail(fmt.Sprintf("part %d of the DBI stream", i), n, Truncated)
		}
		parts[i], rest = rest[:n], rest[n:]
	}
	f.readModules(parts[0])
	return f.readSections(parts[6])
}

// readModules reads the list of object files. A damaged one has fewer.
func (f *File) readModules(b []byte) {
	for len(b) >= moduleSize {
		if s := le.Uint16(b[34:]); s != noStream {
			f.modules = append(f.modules,
				object{uint32(s), le.Uint32(b[36:]), le.Uint32(b[40:]), le.Uint32(b[44:])})
		}
		at := moduleSize
		for range 2 {
			end := bytes.IndexByte(b[at:], 0)
			if end < 0 {
				return
			}
			at += end + 1
		}
		b = b[min((at+3)&^3, len(b)):]
	}
}

// readSections reads the section headers that the list of debug streams names.
func (f *File) readSections(debug []byte) error {
	stream := func(i int) uint32 {
		if len(debug) < 2*i+2 {
			return noStream
		}
		return uint32(le.Uint16(debug[2*i:]))
	}
	if s := stream(debugOmapFrom); s != noStream {
		return f.c.fail("OMAP", uint64(s), Unsupported)
	}
	b, err := f.c.stream(stream(debugSections), "section headers")
	if err != nil {
		return err
	}
	for ; len(b) >= sectionSize; b = b[sectionSize:] {
		f.sections = append(f.sections,
			section{le.Uint32(b[12:]), le.Uint32(b[8:]), le.Uint32(b[36:])&0x20000000 != 0})
	}
	return nil
}

// rva is the address of an offset in a segment, false if there is no code.
func (f *File) rva(segment uint16, offset uint32) (uint32, bool) {
	i := int(segment) - 1
	if i < 0 || i >= len(f.sections) {
		return 0, false
	}
	s := &f.sections[i]
	return s.rva + offset, s.code && offset < s.size && s.rva+offset >= s.rva
}

// module reads the stream of a module, cut into symbols and lines.
func (f *File) module(m *object) (symbols, lines []byte, err error) {
	b, err := f.c.stream(m.stream, "module")
	if err != nil {
		return nil, nil, err
	}
	at := uint64(m.symbols) + uint64(m.c11)
	if at+uint64(m.lines) > uint64(len(b)) {
		return nil, nil, f.c.fail("module", at, Truncated)
	}
	return b[min(4, m.symbols):m.symbols], b[at : at+uint64(m.lines)], nil
}
