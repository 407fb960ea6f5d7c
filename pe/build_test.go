package pe

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/testkit/peasm"
)

// What the images of package peasm have everywhere.
const (
	testBase    = peasm.Base
	testHeaders = peasm.Headers
)

func put16(b []byte, at int, v uint16) { binary.LittleEndian.PutUint16(b[at:], v) }
func put32(b []byte, at int, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }
func put64(b []byte, at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }

// oneSection is an image of one section, which is the directory.
func oneSection(name string, rva uint32, data []byte, directory int, size uint32) *peasm.File {
	return &peasm.File{Sections: []*peasm.Section{peasm.Raw(name, rva, data)}, Dirs: map[int]peasm.Directory{directory: {RVA: rva, Size: size}}}
}

// pdata writes words.
func pdata(words ...uint32) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// sample is an image with something of everything.
func sample() *peasm.File {
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
	return &peasm.File{
		Sections: []*peasm.Section{
			peasm.Raw(".text", 0x1000, make([]byte, 0x100)),
			peasm.Raw(".pdata", 0x2000, pdata(0x1000, 0x1010, 0x4000, 0x1010, 0x1020, 0x4004)),
			peasm.Raw(".rdata", 0x3000, rdata),
			virtual(peasm.Raw(".xdata", 0x4000, []byte{1, 0, 0, 0, 1, 4, 1, 0, 4, 0x42, 0, 0}), 0x2000),
			virtual(peasm.Raw(".eh_frame", 0x6000, []byte{0, 0, 0, 0, 9, 9, 9, 9}), 4),
			peasm.Raw(".debug_frame", 0x7000, []byte{1, 2, 3, 4}),
		},
		Dirs: map[int]peasm.Directory{dirExport: {RVA: 0x3000, Size: 0xc0}, dirException: {RVA: 0x2000, Size: 24}, dirDebug: {RVA: 0x3100, Size: 56}},
	}
}

func virtual(s *peasm.Section, size uint32) *peasm.Section { s.Virtual = size; return s }
