package elf

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// image is a small ELF file in the reader's words.
type image struct {
	machine  uint16
	segments []program
	sections []sectionHeader
	bodies   [][]byte
}

func (im *image) section(s sectionHeader, body []byte) {
	im.sections = append(im.sections, s)
	im.bodies = append(im.bodies, body)
}

// bytes writes the image by the test kit's assembler.
func (im *image) bytes() []byte {
	f := elfasm.File{Machine: im.machine, Entry: 0x1234}
	for _, p := range im.segments {
		f.Segments = append(f.Segments, elfasm.Segment{Type: p.typ, Flags: p.flags, Off: p.off, Addr: p.vaddr, FileSize: p.filesz, MemSize: p.memsz, Align: p.alignTo})
	}
	for i, s := range im.sections {
		f.Sections = append(f.Sections, elfasm.Section{Name: s.name, Type: s.typ, Flags: s.flags, Addr: s.addr, Link: s.link, Info: s.info,
			Align: s.addrAlign, EntrySize: s.entrySize, Body: im.bodies[i]})
	}
	return f.Bytes()
}

func zlibBytes(t testing.TB, p []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	if _, err := w.Write(p); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return out.Bytes()
}

func zstdBytes(t testing.TB, p []byte) []byte {
	w := must.Get(zstd.NewWriter(nil))(t)
	return w.EncodeAll(p, nil)
}

// chdr is an Elf64_Chdr and its data.
func chdr(kind uint32, size uint64, data []byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, kind)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, size)
	b = le.AppendUint64(b, 8)
	return append(b, data...)
}

func mustNew(t testing.TB, data []byte) *File {
	t.Helper()
	f := must.Get(New(data, "image"))(t)
	return f
}
