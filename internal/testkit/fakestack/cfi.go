package fakestack

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
)

// programs is an architecture's call frame information: the CIE's body and the
// FDE programs of a native function, the root and a framed function.
type programs struct {
	arch                 context.Arch
	cie                  []byte
	native, root, framed []byte
}

// CIEs: version 1, "zR", code and data factors, the return address's column,
// absolute pointers, then the first row.
var cfiPrograms = [...]programs{
	AMD64: {context.ArchAMD64, []byte{1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x00, 0x0c, 7, 8, 0x90, 1}, // CFA=rsp+8, RA at CFA-8
		[]byte{0x0e, 16, 0x86, 2},     // CFA=rsp+16, rbp at CFA-16
		[]byte{0x0e, 16, 0x07, 16},    // RA undefined
		[]byte{0x0c, 6, 16, 0x86, 2}}, // CFA=rbp+16, rbp at CFA-16
	ARM64: {context.ArchARM64, []byte{1, 'z', 'R', 0, 4, 0x78, 30, 1, 0x00, 0x0c, 31, 0}, // CFA=sp, RA in x30
		[]byte{0x0e, 32, 0x9d, 4, 0x9e, 3},      // CFA=sp+32, x29 at CFA-32, x30 at CFA-24
		[]byte{0x0e, 32, 0x07, 30},              // RA undefined
		[]byte{0x0c, 29, 32, 0x9d, 4, 0x9e, 3}}, // CFA=x29+32, x29 at CFA-32, x30 at CFA-24
}

// frames is the call frame information of the native module.
func (a Arch) frames(addr uint64) *cfi.Table {
	p := &cfiPrograms[a]
	sec := record(append([]byte{0, 0, 0, 0}, p.cie...))
	for i := range uint64(natives - 1) {
		sec = append(sec, fde(len(sec), nativeText+i*fnSize, p.native)...)
	}
	sec = append(sec, fde(len(sec), nativeText+(natives-1)*fnSize, p.root)...)
	for i := range uint64(natives) {
		sec = append(sec, fde(len(sec), nativeText+(2*natives+i)*fnSize, p.framed)...)
	}
	sec = append(sec, 0, 0, 0, 0)
	t, err := cfi.Load(cfi.Sections{Arch: p.arch, EHFrame: sec, EHFrameAddr: addr})
	if err != nil {
		panic(err)
	}
	return t
}

func record(body []byte) []byte {
	for len(body)%8 != 4 {
		body = append(body, 0) // DW_CFA_nop
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func fde(at int, lo uint64, program []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(at+4)) // the CIE is at 0
	b = binary.LittleEndian.AppendUint64(b, lo)
	b = binary.LittleEndian.AppendUint64(b, fnSize)
	return record(append(append(b, 0), program...))
}
