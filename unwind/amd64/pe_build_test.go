package amd64

import (
	"bytes"
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// PE images, registers and stacks made by hand.

const (
	peBase   = 0x1_4000_0000
	peFn     = 0x1000 // RVA of the function under test, peLen bytes
	peLen    = 0x100
	peInfo   = 0x5000 // RVA of its UNWIND_INFO
	peStack  = 0x7000_0000
	peRSP    = peStack + 0x8000
	peTagged = 0x0077 << 48 // a stack word is its own address with this
)

// peTable is a module table of one PE image.
func peTable(im *pe.File, base uint64) *module.Table { return peTableGen(1, im, base) }

func peTableGen(gen uint32, im *pe.File, base uint64) *module.Table {
	return module.NewTable(gen,
		[]module.Module{{ID: 1, Start: base, End: base + 1<<32 - 1, Bias: base, PE: im}}, nil)
}

// word is what the made stack holds at an address.
func word(at uint64) uint64 { return at | peTagged }

// peMemory is the made stack.
func peMemory() *memory.Window {
	data := make([]byte, 0x20000)
	for i := uint64(0); i < uint64(len(data)); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], word(peStack+i))
	}
	return memory.New(memory.Run{Addr: peStack, Data: data})
}

// peRegs are the registers at an RVA: each holds something of its own, RBP and
// R12 a place on the stack.
func peRegs(rva uint32) Registers {
	r := Registers{RIP: peBase + uint64(rva), Known: context.AMD64All}
	for i := range r.GPR {
		r.GPR[i] = 0xabc0_0000 + uint64(i)
	}
	for i := range r.XMM {
		r.XMM[i] = context.XMM{uint64(i), ^uint64(i)}
	}
	r.GPR[context.RSP], r.GPR[context.RBP], r.GPR[context.R12] = peRSP, peRSP+0x400, peRSP+0x600
	return r
}

// entries writes RUNTIME_FUNCTIONs.
func entries(fns ...peamd64.RuntimeFunction) (b []byte) {
	for _, f := range fns {
		for _, v := range []uint32{f.Begin, f.End, f.Unwind} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	return b
}

// peImage is an image of one function with this unwind information and code at
// its begin; the rest of it is nops. Where no entry is there are returns.
func peImage(info, code []byte, more ...pe.Block) *pe.File {
	return peImageOf(pe.MachineAMD64, info, code, nil, more...)
}

func peImageOf(machine uint16, info, code []byte,
	others []peamd64.RuntimeFunction, more ...pe.Block) *pe.File {
	text := make([]byte, peLen)
	for i := copy(text, code); i < len(text); i++ {
		text[i] = 0x90
	}
	fns := append([]peamd64.RuntimeFunction{{Begin: peFn, End: peFn + peLen, Unwind: peInfo}}, others...)
	return pe.FromBlocks(machine, entries(fns...),
		append(more, pe.Block{RVA: peFn, Data: text},
			pe.Block{RVA: peLeaf, Data: bytes.Repeat([]byte{0xc3}, 0x400)},
			pe.Block{RVA: peInfo, Data: info}))
}

// info writes an UNWIND_INFO head, then codes, padded to an even number.
func info(version, flags, prolog, frame byte, codes ...byte) []byte {
	b := append([]byte{version | flags<<3, prolog, byte(len(codes) / 2), frame}, codes...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// chained is information whose parent is fn.
func chained(frame byte, fn peamd64.RuntimeFunction, codes ...byte) []byte {
	return append(info(1, peamd64.UNW_FLAG_CHAININFO, 0, frame, codes...), entries(fn)...)
}
