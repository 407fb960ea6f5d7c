package pe

import "encoding/binary"

// A writer of PE images, independent of the reader it tests.

// testSection is a section to write. Its file offset follows from its place.
type testSection struct {
	name string // at most eight bytes, or longer through the string table
	rva  uint32
	data []byte
	virt uint32 // virtual size, 0 = len(data)
}

// testImage describes an image to write.
type testImage struct {
	machine  uint16
	pe32     bool
	sections []testSection
	dirs     map[int][2]uint32
}

const (
	testBase    = 0x140000000
	testHeaders = 0x400
	testAlign   = 0x200
)

func put16(b []byte, at int, v uint16) { binary.LittleEndian.PutUint16(b[at:], v) }
func put32(b []byte, at int, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }
func put64(b []byte, at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }

// file writes the image as a file.
func (im *testImage) file() []byte {
	head := make([]byte, testHeaders)
	strings := []byte{0, 0, 0, 0}
	var body []byte
	opt := 0x80 + 24
	optSize := im.optional(head[opt:])
	size := uint32(0x1000)
	for i, s := range im.sections {
		h := head[opt+optSize+40*i:]
		if len(s.name) > 8 {
			copy(h, "/"+itoa(len(strings)))
			strings = append(append(strings, s.name...), 0)
		} else {
			copy(h, s.name)
		}
		virt := s.virt
		if virt == 0 {
			virt = uint32(len(s.data))
		}
		put32(h, 8, virt)
		put32(h, 12, s.rva)
		put32(h, 16, uint32(len(s.data)))
		put32(h, 20, uint32(testHeaders+len(body)))
		body = append(body, s.data...)
		for len(body)%testAlign != 0 {
			body = append(body, 0xee)
		}
		size = max(size, s.rva+virt)
	}
	copy(head, "MZ")
	put32(head, 0x3c, 0x80)
	copy(head[0x80:], "PE\x00\x00")
	put16(head, 0x84, im.machine)
	put16(head, 0x86, uint16(len(im.sections)))
	put32(head, 0x8c, uint32(testHeaders+len(body)))
	put16(head, 0x94, uint16(optSize))
	put32(head, opt+56, size)
	put32(strings, 0, uint32(len(strings)))
	return append(append(head, body...), strings...)
}

func (im *testImage) optional(b []byte) int {
	dirs, magic := 112, uint16(0x20b)
	if im.pe32 {
		dirs, magic = 96, 0x10b
		put32(b, 28, testBase&0xffffffff)
	} else {
		put64(b, 24, testBase)
	}
	put16(b, 0, magic)
	put32(b, 60, testHeaders)
	put32(b, dirs-4, 16)
	for i, d := range im.dirs {
		put32(b, dirs+8*i, d[0])
		put32(b, dirs+8*i+4, d[1])
	}
	return dirs + 16*8
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

// mapped lays the image out as the loader does.
func (im *testImage) mapped() []byte {
	f := im.file()
	end := uint32(0x1000)
	for _, s := range im.sections {
		end = max(end, s.rva+uint32(len(s.data)))
	}
	out := make([]byte, end)
	copy(out, f[:testHeaders])
	for _, s := range im.sections {
		copy(out[s.rva:], s.data)
	}
	return out
}

// pdata writes words.
func pdata(words ...uint32) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// sample is an image with something of everything.
func sample() *testImage {
	rdata := make([]byte, 0x300)
	put32(rdata, 16, 5)      // ordinal base
	put32(rdata, 20, 3)      // functions
	put32(rdata, 24, 3)      // names
	put32(rdata, 28, 0x3040) // addresses
	put32(rdata, 32, 0x3050) // names
	put32(rdata, 36, 0x3060) // ordinals
	for i, rva := range []uint32{0x1000, 0x30a0, 0x1010} {
		put32(rdata, 0x40+4*i, rva)
	}
	for i, rva := range []uint32{0x3080, 0x3088, 0x3090} {
		put32(rdata, 0x50+4*i, rva)
	}
	for i, o := range []uint16{0, 1, 2} {
		put16(rdata, 0x60+2*i, o)
	}
	copy(rdata[0x80:], "Alpha\x00\x00\x00Beta\x00\x00\x00\x00Gamma")
	copy(rdata[0xa0:], "OTHER.Beta")
	put32(rdata, 0x100+28+12, 2) // second debug entry is CodeView
	put32(rdata, 0x100+28+16, 48)
	put32(rdata, 0x100+28+20, 0x3180)
	copy(rdata[0x180:], "RSDS")
	for i := range 16 {
		rdata[0x184+i] = byte(i + 1)
	}
	put32(rdata, 0x194, 0x2a)
	copy(rdata[0x198:], `C:\x\y.pdb`)
	return &testImage{
		machine: MachineAMD64,
		sections: []testSection{
			{name: ".text", rva: 0x1000, data: make([]byte, 0x100)},
			{name: ".pdata", rva: 0x2000, data: pdata(0x1000, 0x1010, 0x4000, 0x1010, 0x1020, 0x4004)},
			{name: ".rdata", rva: 0x3000, data: rdata},
			{name: ".xdata", rva: 0x4000, data: []byte{1, 0, 0, 0, 1, 4, 1, 0, 4, 0x42, 0, 0}, virt: 0x2000},
			{name: ".eh_frame", rva: 0x6000, data: []byte{0, 0, 0, 0, 9, 9, 9, 9}, virt: 4},
			{name: ".debug_frame", rva: 0x7000, data: []byte{1, 2, 3, 4}},
		},
		dirs: map[int][2]uint32{dirExport: {0x3000, 0xc0}, dirException: {0x2000, 24}, dirDebug: {0x3100, 56}},
	}
}
