package elf

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// image writes small ELF files, independently of the reader.
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

// bytes lays the image out: header, program headers, section bodies, names,
// section headers. A PT_LOAD at 0 covers all of it unless segments are given.
func (im *image) bytes() []byte {
	le := binary.LittleEndian
	if im.machine == 0 {
		im.machine = 62
	}
	out := make([]byte, 64+56*(len(im.segments)))
	var names, table bytes.Buffer
	names.WriteByte(0)
	writeSection(&table, sectionHeader{}, 0)
	for i, s := range im.sections {
		for len(out)%16 != 0 {
			out = append(out, 0)
		}
		s.off, s.size = uint64(len(out)), uint64(len(im.bodies[i]))
		out = append(out, im.bodies[i]...)
		at := names.Len()
		names.WriteString(s.name + "\x00")
		writeSection(&table, s, at)
	}
	at := names.Len()
	names.WriteString(".shstrtab\x00")
	writeSection(&table, sectionHeader{typ: 3, off: uint64(len(out)), size: uint64(names.Len())}, at)
	out = append(out, names.Bytes()...)
	shoff := len(out)
	out = append(out, table.Bytes()...)
	copy(out, "\x7fELF\x02\x01\x01")
	le.PutUint16(out[16:], 3)
	le.PutUint16(out[18:], im.machine)
	le.PutUint64(out[24:], 0x1234)
	le.PutUint64(out[32:], 64)
	le.PutUint64(out[40:], uint64(shoff))
	le.PutUint16(out[54:], 56)
	le.PutUint16(out[56:], uint16(len(im.segments)))
	le.PutUint16(out[58:], 64)
	le.PutUint16(out[60:], uint16(len(im.sections)+2))
	le.PutUint16(out[62:], uint16(len(im.sections)+1))
	for i, p := range im.segments {
		if p.filesz == 0 {
			p.filesz, p.memsz = uint64(len(out)), uint64(len(out))
		}
		b := out[64+56*i:]
		le.PutUint32(b, p.typ)
		le.PutUint32(b[4:], p.flags)
		for j, v := range []uint64{p.off, p.vaddr, p.vaddr, p.filesz, p.memsz, p.alignTo} {
			le.PutUint64(b[8+8*j:], v)
		}
	}
	return out
}

func writeSection(w *bytes.Buffer, s sectionHeader, nameAt int) {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(nameAt))
	b = le.AppendUint32(b, s.typ)
	for _, v := range []uint64{s.flags, s.addr, s.off, s.size} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, s.link)
	b = le.AppendUint32(b, s.info)
	b = le.AppendUint64(b, s.addrAlign)
	w.Write(le.AppendUint64(b, s.entrySize))
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
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
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
	f, err := New(data, "image")
	if err != nil {
		t.Fatal(err)
	}
	return f
}
