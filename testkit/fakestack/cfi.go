package fakestack

import (
	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
)

// programs is an architecture's call frame information: the CIE and the FDE programs of a native function, the root and a framed function.
type programs struct {
	arch                 context.Arch
	cie                  elfasm.CIE
	native, root, framed []byte
}

var cfiPrograms = [...]programs{
	context.ArchAMD64: {context.ArchAMD64, elfasm.AMD64CIE(),
		[]byte{0x0e, 16, 0x86, 2},     // CFA=rsp+16, rbp at CFA-16
		[]byte{0x0e, 16, 0x07, 16},    // RA undefined
		[]byte{0x0c, 6, 16, 0x86, 2}}, // CFA=rbp+16, rbp at CFA-16
	context.ArchARM64: {context.ArchARM64, elfasm.ARM64CIE(),
		[]byte{0x0e, 32, 0x9d, 4, 0x9e, 3},      // CFA=sp+32, x29 at CFA-32, x30 at CFA-24
		[]byte{0x0e, 32, 0x07, 30},              // RA undefined
		[]byte{0x0c, 29, 32, 0x9d, 4, 0x9e, 3}}, // CFA=x29+32, x29 at CFA-32, x30 at CFA-24
}

// frames is the call frame information of the native module.
func frames(a context.Arch, addr uint64) *cfi.Table {
	p := &cfiPrograms[a]
	c, frames := p.cie, elfasm.Frames{Addr: addr}
	frames.CIE(&c)
	for i := range uint64(natives - 1) {
		frames.FDE(&c, nativeText+i*fnSize, fnSize, p.native...)
	}
	frames.FDE(&c, nativeText+(natives-1)*fnSize, fnSize, p.root...)
	for i := range uint64(natives) {
		frames.FDE(&c, nativeText+(2*natives+i)*fnSize, fnSize, p.framed...)
	}
	sec := frames.Bytes()
	t, err := cfi.Load(cfi.Sections{Arch: p.arch, EHFrame: sec, EHFrameAddr: addr})
	if err != nil {
		panic(err)
	}
	return t
}
