// Package peasm writes small PE files for tests: headers, imports, exports, a
// version, the header of managed code. It knows nothing of package pe, so that a
// mistake of one does not cancel the other's.
//
// Source: Microsoft, "PE Format".
package peasm

import "encoding/binary"

// Image says what to write. The zero Image is an x86-64 program of nothing.
type Image struct {
	Machine uint16 // 0 = x86-64; a 32-bit machine makes a PE32
	Managed bool
	DLL     bool
	Imports map[string][]string // functions of DLLs; one DLL is enough for tests
	Exports []string            // all at the same address
	Version [4]uint16           // zero: no version resource
}

const (
	base      = 0x140000000
	fileAlign = 0x200
	sectionAt = 0x1000 // RVA of the one section
	bodySize  = 0x1000
	headers   = 0x400
)

var le = binary.LittleEndian

// writer appends to the one section.
type writer struct{ b []byte }

func (w *writer) at() uint32 { return sectionAt + uint32(len(w.b)) }

func (w *writer) u32(v ...uint32) {
	for _, x := range v {
		w.b = le.AppendUint32(w.b, x)
	}
}

func (w *writer) text(s string) uint32 {
	at := w.at()
	w.b = append(append(w.b, s...), 0)
	for len(w.b)%8 != 0 {
		w.b = append(w.b, 0)
	}
	return at
}

// Bytes writes the file.
func (im Image) Bytes() []byte {
	machine := im.Machine
	if machine == 0 {
		machine = 0x8664
	}
	pe32 := machine == 0x14c || machine == 0x1c4
	w := &writer{}
	w.text("\xc3") // the entry point: ret
	var dirs [16][2]uint32
	dirs[0] = im.exports(w)
	dirs[1] = im.imports(w, pe32)
	dirs[2] = im.version(w)
	if im.Managed {
		dirs[14] = [2]uint32{w.at(), 72}
		w.b = append(w.b, make([]byte, 72)...)
	}
	body := make([]byte, bodySize)
	copy(body, w.b)
	return append(im.headers(machine, pe32, dirs), body...)
}

func (im Image) headers(machine uint16, pe32 bool, dirs [16][2]uint32) []byte {
	h := make([]byte, headers)
	copy(h, "MZ")
	le.PutUint32(h[0x3c:], 0x80)
	copy(h[0x80:], "PE\x00\x00")
	le.PutUint16(h[0x84:], machine)
	le.PutUint16(h[0x86:], 1)
	opt, dir := h[0x98:], 112
	magic, characteristics := uint16(0x20b), uint16(0x22)
	if pe32 {
		magic, dir = 0x10b, 96
		le.PutUint32(opt[28:], 0x400000)
	} else {
		le.PutUint64(opt[24:], base)
	}
	if im.DLL {
		characteristics |= 0x2000
	}
	le.PutUint16(h[0x94:], uint16(dir+128))
	le.PutUint16(h[0x96:], characteristics)
	le.PutUint16(opt, magic)
	le.PutUint32(opt[16:], sectionAt) // entry point
	le.PutUint32(opt[32:], sectionAt) // section alignment
	le.PutUint32(opt[36:], fileAlign)
	le.PutUint16(opt[40:], 6) // operating system
	le.PutUint16(opt[48:], 6) // subsystem version
	le.PutUint32(opt[56:], sectionAt+bodySize)
	le.PutUint32(opt[60:], headers)
	le.PutUint16(opt[68:], 3) // console
	le.PutUint32(opt[dir-4:], 16)
	for i, d := range dirs {
		le.PutUint32(opt[dir+8*i:], d[0])
		le.PutUint32(opt[dir+8*i+4:], d[1])
	}
	s := opt[dir+128:]
	copy(s, ".all")
	for i, v := range []uint32{bodySize, sectionAt, bodySize, headers} {
		le.PutUint32(s[8+4*i:], v)
	}
	le.PutUint32(s[36:], 0xe0000020) // code that can be read and written
	return h
}

func (im Image) exports(w *writer) [2]uint32 {
	if len(im.Exports) == 0 {
		return [2]uint32{}
	}
	n := uint32(len(im.Exports))
	var names []uint32
	for _, e := range im.Exports {
		names = append(names, w.text(e))
	}
	own := w.text("tiny.dll")
	begin := w.at()
	tables := begin + 40
	w.u32(0, 0, 0, own, 1, n, n, tables, tables+4*n, tables+8*n)
	for range names {
		w.u32(sectionAt)
	}
	w.u32(names...)
	for i := range names {
		w.b = le.AppendUint16(w.b, uint16(i))
	}
	w.text("")
	return [2]uint32{begin, 40}
}

func (im Image) imports(w *writer, pe32 bool) [2]uint32 {
	if len(im.Imports) == 0 {
		return [2]uint32{}
	}
	var rows []uint32
	for dll, functions := range im.Imports {
		var at []uint32
		for _, f := range functions {
			at = append(at, w.text("\x00\x00"+f))
		}
		name := w.text(dll)
		thunks := w.at()
		for range 2 { // names, and where their addresses go
			for _, a := range append(at, 0) {
				w.u32(a)
				if !pe32 {
					w.u32(0)
				}
			}
		}
		size := uint32(8)
		if pe32 {
			size = 4
		}
		rows = append(rows, thunks, 0, 0, name, thunks+size*uint32(len(at)+1))
	}
	begin := w.at()
	w.u32(append(rows, 0, 0, 0, 0, 0)...)
	return [2]uint32{begin, w.at() - begin}
}

func (im Image) version(w *writer) [2]uint32 {
	if im.Version == [4]uint16{} {
		return [2]uint32{}
	}
	begin := w.at()
	const one = 1 << 16 // no named entries, one with a number
	for i, id := range []uint32{16, 1, 1033} {
		next := uint32(24 * (i + 1))
		if i < 2 {
			next |= 1 << 31
		}
		w.u32(0, 0, 0, one, id, next)
	}
	data := w.at() + 16
	w.u32(data, 92, 0, 0)
	w.b = append(w.b, make([]byte, 40)...)
	v := im.Version
	w.u32(0xfeef04bd, 1<<16, uint32(v[0])<<16|uint32(v[1]), uint32(v[2])<<16|uint32(v[3]))
	w.b = append(w.b, make([]byte, 36)...)
	w.text("")
	return [2]uint32{begin, w.at() - begin}
}
