package pe

import (
	"fmt"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// DebugID names the build of an image and its symbol file.
type DebugID struct {
	GUID [16]byte
	Age  uint32
	PDB  string // the symbol file's path as the linker wrote it
}

// String returns GUID and age the way symbol servers write them: 32 upper-case
// hex digits, then the age in hex.
func (d DebugID) String() string {
	g := &d.GUID
	return fmt.Sprintf("%08X%04X%04X%X%X", u32(g[:]), u16(g[4:]), u16(g[6:]), g[8:], d.Age)
}

const (
	debugEntry    = 28
	debugCodeView = 2
	rsds          = 'R' | 'S'<<8 | 'D'<<16 | 'S'<<24
	maxDebug      = 256 // entries looked at
)

// DebugID returns the id of the image's first readable CodeView record.
func (f *File) DebugID() (id DebugID, ok bool) {
	d := f.dirs[dirDebug]
	table := f.Tail(d.rva, int(min(d.size, maxDebug*debugEntry)))
	for ; len(table) >= debugEntry; table = table[debugEntry:] {
		if u32(table[12:]) != debugCodeView {
			continue
		}
		b := f.debugData(u32(table[20:]), u32(table[24:]), u32(table[16:]))
		if len(b) < 24 || u32(b) != rsds {
			continue
		}
		copy(id.GUID[:], b[4:])
		id.Age, id.PDB = u32(b[20:]), cString(b[24:])
		return id, true
	}
	return id, false
}

// debugData returns at most maxName bytes of a debug record, nil if there are
// none. With rva 0, the record is only in the file, at offset.
func (f *File) debugData(rva, offset, size uint32) []byte {
	n := min(int(size), maxName)
	if rva != 0 {
		return f.Tail(rva, n)
	}
	if uint64(offset) >= uint64(len(f.raw)) {
		return nil
	}
	b := f.raw[offset:]
	return b[:min(n, len(b))]
}

// DWARF holds the call frame sections that the GNU, LLVM, and Go compilers
// write for Windows. Addresses are those of an image at ImageBase.
type DWARF struct {
	EHFrame        []byte
	EHFrameAddr    uint64
	DebugFrame     []byte
	DebugFrameAddr uint64
	TextAddr       uint64
	Compressed     bool  // DebugFrame was expanded from .zdebug_frame
	Err            error // why .zdebug_frame could not be expanded
}

// maxExpanded bounds the expanded size of a compressed section, in bytes.
const maxExpanded = 1 << 28

// DWARF returns the call frame sections. The bytes of a section are nil if it is missing or not readable.
func (f *File) DWARF() (d DWARF) {
	if s := f.Section(".eh_frame"); s != nil {
		d.EHFrame, d.EHFrameAddr = f.sectionBytes(s), f.base+uint64(s.RVA)
	}
	if s := f.Section(".debug_frame"); s != nil {
		d.DebugFrame, d.DebugFrameAddr = f.sectionBytes(s), f.base+uint64(s.RVA)
	}
	if s := f.Section(".zdebug_frame"); s != nil && d.DebugFrame == nil {
		out, err := buf.ExpandGNU(f.sectionBytes(s), maxExpanded)
		if err != nil {
			d.Err = fmt.Errorf("%s: section .zdebug_frame at RVA %#x: %w", f.name, s.RVA, err)
		}
		d.DebugFrame, d.Compressed = out, out != nil
	}
	if s := f.Section(".text"); s != nil {
		d.TextAddr = f.base + uint64(s.RVA)
	}
	return d
}

func (f *File) sectionBytes(s *Section) []byte {
	n := max(s.VirtualSize, s.Size) // of a compressed section, Go's linker states only the size in the file
	if s.VirtualSize != 0 && s.Name != ".zdebug_frame" {
		n = s.VirtualSize
	}
	return f.Tail(s.RVA, int(n))
}
