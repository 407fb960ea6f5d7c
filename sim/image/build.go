package image

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// textRVA is where code begins: one page for the headers of either format.
const textRVA = 0x1000

// maxImage bounds an image, bytes: file offsets and RVAs are 32 bits, and calls
// reach 2 GiB.
const maxImage = 1 << 28

// Build places functions one after another from RVA 0x1000, 16-byte aligned,
// the room between them filled with traps, and writes an image of the format.
// The functions' order is kept; funcs itself is not changed.
//
// It refuses functions whose ops are not contiguous, empty ones, and what the
// format's writer cannot express.
func Build(a Arch, f Format, name string, base uint64, funcs []Func) (*Image, error) {
	im := &Image{Arch: a, Format: f, Name: name, Base: base, Funcs: make([]Func, len(funcs))}
	copy(im.Funcs, funcs)
	rva := uint32(textRVA)
	for i := range im.Funcs {
		fn := &im.Funcs[i]
		size, err := codeSize(fn)
		if err != nil {
			return nil, err
		}
		if size > maxImage-rva {
			return nil, errors.New("image: too large")
		}
		fn.RVA, fn.Size = rva, size
		fn.rows = traceRows(fn, a)
		// One byte at least lies between two functions: a call may be the last op.
		rva = align(rva+size+1, 16)
	}
	im.Text = [2]uint32{textRVA, rva}
	im.File = make([]byte, rva)
	im.trap(textRVA, rva)
	for i := range im.Funcs {
		im.link(i)
		fn := &im.Funcs[i]
		for j := range fn.Ops {
			copy(im.File[fn.RVA+fn.Ops[j].Off:], fn.Ops[j].Code)
		}
	}
	if f == PE {
		return im, writePE(im)
	}
	return im, writeELF(im)
}

// codeSize adds up a function's ops, which must follow one another.
func codeSize(f *Func) (uint32, error) {
	size := uint32(0)
	for i := range f.Ops {
		if op := &f.Ops[i]; op.Off != size || len(op.Code) == 0 {
			return 0, fmt.Errorf("image: %s: op %d at %#x is not where the one before it ends",
				f.Name, i, op.Off)
		}
		size += uint32(len(f.Ops[i].Code))
		if size > maxImage {
			return 0, errors.New("image: too large")
		}
	}
	if size == 0 {
		return 0, fmt.Errorf("image: %s has no ops", f.Name)
	}
	return size, nil
}

// trap fills [lo,hi) with instructions that trap: int3, or udf #0.
func (m *Image) trap(lo, hi uint32) {
	if m.Arch == ARM64 {
		return // udf #0 is 0
	}
	for ; lo < hi; lo++ {
		m.File[lo] = 0xcc
	}
}

// link gives x86-64's relative calls and tail jumps of function i a target: the
// first byte of the next function, so that a jump never stays in its own. With
// one function alone, the headers.
func (m *Image) link(i int) {
	if m.Arch != AMD64 {
		return
	}
	fn, target := &m.Funcs[i], uint32(0)
	if len(m.Funcs) > 1 {
		target = m.Funcs[(i+1)%len(m.Funcs)].RVA
	}
	ops := make([]Op, len(fn.Ops))
	copy(ops, fn.Ops)
	fn.Ops = ops
	for j := range ops {
		op := &ops[j]
		if len(op.Code) == 5 && (op.Code[0] == 0xe8 || op.Code[0] == 0xe9) {
			rel := target - (fn.RVA + op.Off + 5)
			op.Code = binary.LittleEndian.AppendUint32([]byte{op.Code[0]}, rel)
		}
	}
}

func align(v, to uint32) uint32 { return (v + to - 1) &^ (to - 1) }
