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
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// realigned is how gcc describes a function that realigns its stack: the CFA is r13's
// value, and RBP is where RBP points, in its epilog too.
var realigned = append([]byte{cfi.DW_CFA_def_cfa, 13, 0, cfi.DW_CFA_offset | 13, 2},
	expr(cfi.DW_CFA_expression, 6, cfi.DW_OP_breg0+6, 0)...)

const thunkLo = codeLo + 0x400

// realignedTable maps code that realigned describes.
func realignedTable(t *testing.T, code []byte) *module.Table {
	t.Helper()
	return describedTable(t, code, realigned)
}

// describedTable maps code as function 0, described by a program. Function 1 follows, with the row of a
// function's first instruction. gcc's __x86_indirect_thunk_r11 is at thunkLo. A call is before codeCall.
func describedTable(t *testing.T, code, program []byte) *module.Table {
	t.Helper()
	text := make([]byte, 0x1000)
	copy(text, code)
	copy(text[0x800:], []byte{0xe8, 0, 0, 0, 0})
	copy(text[thunkLo-codeLo:],
		slices.Concat([]byte{0xe8, 7, 0, 0, 0}, x86.Trap, []byte{0xeb, 0xf9, 0x4c, 0x89, 0x1c, 0x24, 0xc3}))
	f := must.Get(elf.New(elfasm.Code(elfasm.AMD64, codeLo-textBias, text), "code"))(t)
	cie, frames := elfasm.AMD64CIE(), elfasm.Frames{}
	frames.CIE(&cie)
	frames.FDE(&cie, codeLo-textBias, fnSize, program...)
	frames.FDE(&cie, codeLo-textBias+fnSize, fnSize)
	frames.FDE(&cie, thunkLo-textBias, 17, cfi.DW_CFA_advance_loc|12, cfi.DW_CFA_def_cfa_offset, 16)
	c := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchAMD64,
		EHFrame: frames.Bytes(), EHFrameAddr: 0x100000}))(t)
	return module.NewTable(1,
		[]module.Module{{Start: textBias, End: textBias + 0x2000, Bias: textBias, ELF: f, CFI: c}},
		[]memory.Range{{Start: jitLo, End: jitHi}})
}

// TestRealignedEpilog: RBP has already been restored, but the unwind data uses the place to which it pointed
// before. The code decides, if it leaves the function.
func TestRealignedEpilog(t *testing.T) {
	head := []byte{0x49, 0x8d, 0x65, 0xf0, 0x41, 0x5d} // lea rsp, [r13-16]; pop r13
	to := func(op byte, target uint64) []byte {
		by := int32(target) - int32(len(head)+5)
		return []byte{op, byte(by), byte(by >> 8), byte(by >> 16), byte(by >> 24)}
	}
	const cfa = sp0 + 0x80
	for _, c := range []struct {
		name  string
		tail  []byte
		ra    uint64
		trust unwind.Trust
	}{
		{"return", []byte{0xc3}, codeCall, unwind.TrustEpilog},
		{"return through a thunk",
			slices.Concat([]byte{0xe8, 7, 0, 0, 0}, x86.Trap,
				[]byte{0xeb, 0xf9, 0x48, 0x8d, 0x64, 0x24, 8, 0xc3}), codeCall, unwind.TrustEpilog},
		{"return after zeroing registers", append(bytes.Repeat([]byte{0x0f, 0x57, 0xc0}, 40), 0xc3),
			codeCall, unwind.TrustEpilog},
		{"tail call", to(0xe9, fnSize), codeCall, unwind.TrustEpilog},
		{"tail call through a register", []byte{0xff, 0xe2}, codeCall, unwind.TrustEpilog},
		{"tail call through memory", []byte{0xff, 0x25, 0, 0, 0, 0}, codeCall, unwind.TrustEpilog},
		{"tail call of what looks like a return address", []byte{0xff, 0xe0}, codeCall, unwind.TrustEpilog},
		{"return by a jump", []byte{0x59, 0x0f, 0xae, 0xe8, 0xff, 0xe1}, codeCall, unwind.TrustEpilog},
		{"jump behind a pop", []byte{0x59, 0x0f, 0xae, 0xe8, 0xff, 0xe2}, codeCall, unwind.TrustCFI},
		{"jump with a word of the frame left",
			append([]byte{0x50}, to(0xe9, fnSize)...), codeCall, unwind.TrustCFI},
		{"jump above the return address",
			append([]byte{0x58}, to(0xe9, fnSize)...), codeCall, unwind.TrustCFI},
		{"call of a function that returns", []byte{0xe8, 1, 0, 0, 0, 0xc3, 0xc3}, codeCall, unwind.TrustCFI},
		{"return to what was pushed", []byte{0x68, 0x34, 0x12, 0, 0, 0xc3}, codeCall, unwind.TrustCFI},
		{"tail call without a return address", to(0xe9, fnSize), codeCall - 1, unwind.TrustCFI},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, s, r := unwinder(realignedTable(t, append(append([]byte{}, head...), c.tail...))),
				newStack(), start(codeLo, sp0)
			r.GPR[context.R13] = cfa
			s.Set(cfa-16, 0x13)
			s.Set(cfa-8, c.ra)
			s.Set(cfa, codeCall) // return addresses at the wrong depths
			r.GPR[context.RAX] = codeCall
			before := r.FP()
			var f unwind.Frame
			_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
			expect.True(t, stop == unwind.StopNone && r.RIP == c.ra && r.SP() == cfa &&
				r.GPR[context.R13] == 0x13 && u.trust == c.trust,
				"stop %v at %#x/%#x, r13 %#x, by %v", stop, r.RIP, r.SP(), r.GPR[context.R13], u.trust)
			if right := known(&r, context.RBP) && r.FP() == before; right != (c.trust == unwind.TrustEpilog) {
				t.Errorf("rbp %#x, known %v", r.FP(), known(&r, context.RBP))
			}
		})
	}
}

// TestReturnByJumpOfRealigned: the return address has been popped, and the unwind data still
// locates the saved RBP at the address in RBP.
func TestReturnByJumpOfRealigned(t *testing.T) {
	program := append(expr(cfi.DW_CFA_expression, 6, cfi.DW_OP_breg0+6, 0),
		cfi.DW_CFA_advance_loc|6, cfi.DW_CFA_def_cfa_offset, 8)
	for at := range uint64(2) {
		code := []byte{0x59, 0x0f, 0xae, 0xe8, 0xff, 0xe1} // pop rcx; lfence; jmp rcx
		u, s, r := unwinder(describedTable(t, code, program)), newStack(), start(codeLo+at, sp0)
		s.Set(sp0, codeCall)
		r.GPR[context.RSP] += 8 * at
		r.GPR[context.RCX] = codeCall
		before := r.FP()
		var f unwind.Frame
		_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
		expect.True(t, stop == unwind.StopNone && r.RIP == codeCall && r.SP() == sp0+8 && r.FP() == before &&
			u.trust == unwind.TrustEpilog,
			"at %d: %v at %#x/%#x, rbp %#x, by %v", at, stop, r.RIP, r.SP(), r.FP(), u.trust)
	}
}

// TestMovedRegisters: if the CFA is the value of a register and the stack was aligned, saved
// registers are not at their listed distance from the CFA.
func TestMovedRegisters(t *testing.T) {
	for _, c := range []struct {
		name  string
		reg   byte // of the CFA
		off   byte
		keeps bool // rbx
	}{
		{"r10", 10, 0, false}, {"r13", 13, 0, false}, {"assembly by r11", 11, 8, true},
		{"rbp", 6, 0, true}, {"rsp", 7, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := []byte{cfi.DW_CFA_def_cfa, c.reg, c.off,
				cfi.DW_CFA_offset | 3, 3, cfi.DW_CFA_offset | 13, 2}
			u, s, r := unwinder(describedTable(t, nil, program)), newStack(), start(codeLo+4, sp0)
			const cfa = sp0 + 0x80
			for _, reg := range []int{context.R10, context.R11, context.R13, context.RBP} {
				r.GPR[reg] = cfa - uint64(c.off)
			}
			if c.reg == dwarfRSP {
				r.GPR[context.RSP] = cfa
			}
			s.Set(cfa-8, codeCall)
			s.Set(cfa-16, 0x13)
			var f unwind.Frame
			_, stop := stepOf(u, &r, false, s.Window(), nil, &f)
			expect.True(t, stop == unwind.StopNone && r.RIP == codeCall && known(&r, context.RBX) == c.keeps,
				"%v at %#x, rbx known %v", stop, r.RIP, known(&r, context.RBX))
			if own := c.keeps || c.reg == 13; known(&r, context.R13) != own ||
				own && r.GPR[context.R13] != 0x13 {
				t.Errorf("r13 %#x, known %v", r.GPR[context.R13], known(&r, context.R13))
			}
		})
	}
}

// TestPushedReturn: a return to what the code has just pushed is a jump and leaves no frame.
func TestPushedReturn(t *testing.T) {
	code := []byte{0x53, 0xc3} // push rbx; ret
	u, s, r := unwinder(realignedTable(t, code)), newStack(), start(codeLo, sp0)
	r.GPR[context.RBX], r.GPR[context.R13], r.GPR[context.RBP] = codeCall, sp0+0x40, sp0+0x10
	s.Set(sp0+0x38, codeCall)
	var f unwind.Frame
	_, stop := stepOf(u, &r, true, s.Window(), nil, &f)
	expect.True(t, stop == unwind.StopNone && r.SP() == sp0+0x40, "%v, at %#x/%#x", stop, r.RIP, r.SP())
}
