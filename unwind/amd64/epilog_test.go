package amd64

import (
	"bytes"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// realigned is how gcc describes a function that realigns its stack: the CFA is r13's
// value, and RBP is where RBP points, in its epilog too.
var realigned = append([]byte{cfi.DW_CFA_def_cfa, 13, 0, cfi.DW_CFA_offset | 13, 2}, expr(cfi.DW_CFA_expression, 6, cfi.DW_OP_breg0+6, 0)...)

// realignedTable maps code that realigned describes.
func realignedTable(t *testing.T, code []byte) *module.Table {
	t.Helper()
	return describedTable(t, code, realigned)
}

// describedTable maps code as function 0, described by a program. Function 1 follows
// with the rules of a function's first instruction. Before codeCall is a call.
func describedTable(t *testing.T, code, program []byte) *module.Table {
	t.Helper()
	text := make([]byte, 0x1000)
	copy(text, code)
	copy(text[0x800:], []byte{0xe8, 0, 0, 0, 0})
	f, err := elf.New(elfasm.Code(elfasm.AMD64, codeLo-textBias, text), "code")
	if err != nil {
		t.Fatal(err)
	}
	cie, frames := elfasm.AMD64CIE(), elfasm.Frames{}
	frames.CIE(&cie)
	frames.FDE(&cie, codeLo-textBias, fnSize, program...)
	frames.FDE(&cie, codeLo-textBias+fnSize, fnSize)
	c, err := cfi.Load(cfi.Sections{Arch: context.ArchAMD64, EHFrame: frames.Bytes(), EHFrameAddr: 0x100000})
	if err != nil {
		t.Fatal(err)
	}
	return module.NewTable(1, []module.Module{{Start: textBias, End: textBias + 0x2000, Bias: textBias, ELF: f, CFI: c}}, []memory.Range{{Start: jitLo, End: jitHi}})
}

// TestRealignedEpilog: RBP has been restored already, and unwind data names the place
// that it pointed to before. The code says so where it leads out of the function.
func TestRealignedEpilog(t *testing.T) {
	head := []byte{0x49, 0x8d, 0x65, 0xf0, 0x41, 0x5d} // lea rsp, [r13-16]; pop r13
	to := func(op byte, target uint64) []byte {
		by := int32(target) - int32(len(head)+5)
		return []byte{op, byte(by), byte(by >> 8), byte(by >> 16), byte(by >> 24)}
	}
	const cfa = sp0 + 0x80
	for _, c := range []struct {
		name string
		tail []byte
		ra   uint64
		by   unwind.Trust
	}{
		{"return", []byte{0xc3}, codeCall, unwind.TrustEpilog},
		{"return through a thunk", slices.Concat([]byte{0xe8, 7, 0, 0, 0}, trap, []byte{0xeb, 0xf9, 0x48, 0x8d, 0x64, 0x24, 8, 0xc3}), codeCall, unwind.TrustEpilog},
		{"return after zeroing registers", append(bytes.Repeat([]byte{0x0f, 0x57, 0xc0}, 40), 0xc3), codeCall, unwind.TrustEpilog},
		{"tail call", to(0xe9, fnSize), codeCall, unwind.TrustEpilog},
		{"tail call through a register", []byte{0xff, 0xe2}, codeCall, unwind.TrustEpilog},
		{"tail call through memory", []byte{0xff, 0x25, 0, 0, 0, 0}, codeCall, unwind.TrustEpilog},
		{"jump with a word of the frame left", append([]byte{0x50}, to(0xe9, fnSize)...), codeCall, unwind.TrustCFI},
		{"jump above the return address", append([]byte{0x58}, to(0xe9, fnSize)...), codeCall, unwind.TrustCFI},
		{"call", []byte{0xe8, 7, 0, 0, 0, 0xc3}, codeCall, unwind.TrustCFI},
		{"return to what was pushed", []byte{0x68, 0x34, 0x12, 0, 0, 0xc3}, codeCall, unwind.TrustCFI},
		{"tail call without a return address", to(0xe9, fnSize), codeCall - 1, unwind.TrustCFI},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s, r := unwinder(realignedTable(t, append(append([]byte{}, head...), c.tail...))), newStack(), start(codeLo, sp0)
			r.GPR[context.R13] = cfa
			s.set(cfa-16, 0x13)
			s.set(cfa-8, c.ra)
			s.set(cfa, codeCall) // return addresses at the wrong depths
			r.GPR[context.RAX] = codeCall
			before := r.FP()
			var f unwind.Frame
			_, stop := stepOf(u, &r, true, s.window(), nil, &f)
			if stop != unwind.StopNone || r.RIP != c.ra || r.SP() != cfa || r.GPR[context.R13] != 0x13 || u.by != c.by {
				t.Errorf("stop %v at %#x/%#x, r13 %#x, by %v", stop, r.RIP, r.SP(), r.GPR[context.R13], u.by)
			}
			if right := known(&r, context.RBP) && r.FP() == before; right != (c.by == unwind.TrustEpilog) {
				t.Errorf("rbp %#x, known %v", r.FP(), known(&r, context.RBP))
			}
		})
	}
}
