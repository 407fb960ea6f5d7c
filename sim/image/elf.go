package image

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
)

// A shared object whose file offsets are its virtual addresses. Sources: System
// V gABI chapters 4 and 5; LSB Core (PT_GNU_EH_FRAME); GNU binutils' build id.

const (
	elfHeader   = 64
	elfProgram  = 56
	elfSection  = 64
	elfSymbol   = 24
	elfNote     = 0x200 // offset of the build id note, in the headers' page
	shtProgbits = 1
	shtSymtab   = 2
	shtStrtab   = 3
	shtNote     = 7
	shfAlloc    = 2
	shfExec     = 4
	textIndex   = 2 // of .text in the section table
)

// elfSectionHeader is one entry of the section table.
type elfSectionHeader struct {
	name          string
	typ, flags    uint32
	at, size      uint32
	link, info    uint32
	alignTo, each uint64
}

// writeELF appends the unwind data, the symbols and the section table to the
// code in im.File and writes the headers before it.
func writeELF(im *Image) error {
	note := im.buildID()
	s := []elfSectionHeader{
		{},
		{name: ".note.gnu.build-id", typ: shtNote, flags: shfAlloc, at: elfNote,
			size: uint32(len(note)), alignTo: 4},
		{name: ".text", typ: shtProgbits, flags: shfAlloc | shfExec, at: im.Text[0],
			size: im.Text[1] - im.Text[0], alignTo: 16},
	}
	f, err := ehFrame(im, align(uint32(len(im.File)), 8))
	if err != nil {
		return err
	}
	s = append(s, im.append(elfSectionHeader{name: ".eh_frame", typ: shtProgbits,
		flags: shfAlloc, alignTo: 8}, f.b))
	frame := s[len(s)-1].at
	header := f.header(align(uint32(len(im.File)), 8), frame)
	s = append(s, im.append(elfSectionHeader{name: ".eh_frame_hdr", typ: shtProgbits,
		flags: shfAlloc, alignTo: 8}, header))
	search := s[len(s)-1]
	symbols, names := im.symbols()
	s = append(s, im.append(elfSectionHeader{name: ".symtab", typ: shtSymtab, link: uint32(len(s) + 1),
		info: 1, alignTo: 8, each: elfSymbol}, symbols))
	s = append(s, im.append(elfSectionHeader{name: ".strtab", typ: shtStrtab, alignTo: 1}, names))
	im.elfSections(s)
	copy(im.File[elfNote:], note)
	im.elfPrograms(search, uint32(len(note)))
	return nil
}

// append appends a section's bytes.
func (m *Image) append(s elfSectionHeader, b []byte) elfSectionHeader {
	m.pad(uint32(s.alignTo))
	s.at, s.size = uint32(len(m.File)), uint32(len(b))
	m.File = append(m.File, b...)
	return s
}

// buildID makes the note, of a hash over the code and the name.
func (m *Image) buildID() []byte {
	h := sha1.New()
	h.Write(m.File)
	h.Write([]byte(m.Name))
	var note []byte
	for _, v := range []uint32{4, sha1.Size, 3} { // NT_GNU_BUILD_ID
		note = binary.LittleEndian.AppendUint32(note, v)
	}
	return h.Sum(append(note, "GNU\x00"...))
}

// symbols returns .symtab and .strtab: a global function for each function.
func (m *Image) symbols() (table, names []byte) {
	table, names = make([]byte, elfSymbol), []byte{0}
	for i := range m.Funcs {
		f := &m.Funcs[i]
		table = binary.LittleEndian.AppendUint32(table, uint32(len(names)))
		table = append(table, 1<<4|2, 0, textIndex, 0) // STB_GLOBAL, STT_FUNC
		table = binary.LittleEndian.AppendUint64(table, uint64(f.RVA))
		table = binary.LittleEndian.AppendUint64(table, uint64(f.Size))
		names = append(append(names, f.Name...), 0)
	}
	return table, names
}

// elfSections appends the section names and the table, and writes the file
// header, which counts them.
func (m *Image) elfSections(s []elfSectionHeader) {
	var names bytes.Buffer
	at := make([]uint32, len(s)+1)
	s = append(s, elfSectionHeader{name: ".shstrtab", typ: shtStrtab, alignTo: 1})
	for i := range s {
		at[i] = uint32(names.Len())
		names.WriteString(s[i].name)
		names.WriteByte(0)
	}
	s[len(s)-1] = m.append(s[len(s)-1], names.Bytes())
	m.pad(8)
	table := uint32(len(m.File))
	for i := range s {
		m.File = append(m.File, s[i].bytes(at[i])...)
	}
	m.elfHeader(table, uint16(len(s)))
}

// bytes returns an Elf64_Shdr.
func (s *elfSectionHeader) bytes(name uint32) []byte {
	addr := uint64(s.at)
	if s.flags&shfAlloc == 0 {
		addr = 0
	}
	b := make([]byte, elfSection)
	binary.LittleEndian.PutUint32(b, name)
	binary.LittleEndian.PutUint32(b[4:], s.typ)
	binary.LittleEndian.PutUint64(b[8:], uint64(s.flags))
	binary.LittleEndian.PutUint64(b[16:], addr)
	binary.LittleEndian.PutUint64(b[24:], uint64(s.at))
	binary.LittleEndian.PutUint64(b[32:], uint64(s.size))
	binary.LittleEndian.PutUint32(b[40:], s.link)
	binary.LittleEndian.PutUint32(b[44:], s.info)
	binary.LittleEndian.PutUint64(b[48:], s.alignTo)
	binary.LittleEndian.PutUint64(b[56:], s.each)
	return b
}

// programCount: the image, the search table, the build id.
const programCount = 3

// elfHeader writes the Elf64_Ehdr.
func (m *Image) elfHeader(table uint32, sections uint16) {
	h := m.File[:elfHeader]
	u16 := func(at int, v uint16) { binary.LittleEndian.PutUint16(h[at:], v) }
	copy(h, "\x7fELF\x02\x01\x01")
	u16(16, 3) // ET_DYN
	u16(18, 62)
	if m.Arch == ARM64 {
		u16(18, 183)
	}
	u16(20, 1)
	binary.LittleEndian.PutUint64(h[32:], elfHeader)
	binary.LittleEndian.PutUint64(h[40:], uint64(table))
	u16(52, elfHeader)
	u16(54, elfProgram)
	u16(56, programCount)
	u16(58, elfSection)
	u16(60, sections)
	u16(62, sections-1) // .shstrtab is the last
}

// elfPrograms writes the program headers; the file has its final size.
func (m *Image) elfPrograms(search elfSectionHeader, note uint32) {
	const read, readExec = 4, 5
	for i, p := range [programCount]struct {
		typ, flags, at, size uint32
		alignTo              uint64
	}{
		{1, readExec, 0, uint32(len(m.File)), 0x1000}, // PT_LOAD
		{0x6474e550, read, search.at, search.size, 8}, // PT_GNU_EH_FRAME
		{4, read, elfNote, note, 4},                   // PT_NOTE
	} {
		b := m.File[elfHeader+i*elfProgram:]
		binary.LittleEndian.PutUint32(b, p.typ)
		binary.LittleEndian.PutUint32(b[4:], p.flags)
		for k, v := range []uint64{uint64(p.at), uint64(p.at), uint64(p.at),
			uint64(p.size), uint64(p.size), p.alignTo} {
			binary.LittleEndian.PutUint64(b[8+8*k:], v)
		}
	}
}

// RestoreRT makes SignalReturn's trampoline without call frame information, as in
// libraries stripped of it and in the ARM64 vDSO. A walker must recognize its code.
func RestoreRT(a Arch) Func {
	f := SignalReturn(a)
	f.NoInfo = true
	return f
}
