package amd64

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// TestPEEpilogInstructions: what ends or makes up an epilog of version 1, and
// what only looks like it. The unwind information says 40 bytes are allocated:
// an epilog is distinguished from the body by the stack pointer.
func TestPEEpilogInstructions(t *testing.T) {
	const bodySP, rbp, r12 = peRSP + 48, peRSP + 0x400, peRSP + 0x600
	body := func(name string, code ...byte) peEffect {
		return peEffect{name: name, sp: bodySP, im: epilogImage(0, code)}
	}
	epilog := func(name string, sp uint64, code ...byte) peEffect {
		return peEffect{name: name, sp: sp, part: PEEpilog, im: epilogImage(0, code)}
	}
	framed := func(name string, reg byte, sp uint64, part PEPart, code ...byte) peEffect {
		at := map[byte]uint64{5: rbp, 12: r12, 3: 0xabc00003}[reg]
		return peEffect{name: name, sp: sp, part: part, frame: at, im: epilogImage(reg, code)}
	}
	for _, c := range []peEffect{
		epilog("ret", peRSP+8, 0xc3),
		epilog("ret imm16", peRSP+8, 0xc2, 0x10, 0),
		epilog("rep ret", peRSP+8, 0xf3, 0xc3),
		epilog("bnd ret", peRSP+8, 0xf2, 0xc3),
		epilog("add rsp, imm8", peRSP+0x20+8, 0x48, 0x83, 0xc4, 0x20, 0xc3),
		epilog("add rsp, -8", peRSP, 0x48, 0x83, 0xc4, 0xf8, 0xc3),
		epilog("add rsp, imm32", peRSP+0x200+8, 0x48, 0x81, 0xc4, 0, 2, 0, 0, 0xc3),
		epilog("jmp rel8 out of the function", peRSP+8, 0xeb, 0x80),
		epilog("jmp rel32 out of the function", peRSP+8, 0xe9, 0, 0x10, 0, 0),
		epilog("jmp to the function's first byte", peRSP+8, 0xeb, 0x100-18),
		epilog("jmp [rip+disp]", peRSP+8, 0xff, 0x25, 1, 2, 3, 4),
		epilog("rex.w jmp rax", peRSP+8, 0x48, 0xff, 0xe0),
		epilog("rex.wb jmp r10", peRSP+8, 0x49, 0xff, 0xe2),
		epilog("rex.w jmp [rax+8]", peRSP+8, 0x48, 0xff, 0x60, 8),
		epilog("vzeroupper, ret", peRSP+8, 0xc5, 0xf8, 0x77, 0xc3),
		epilog("vzeroupper, bnd ret", peRSP+8, 0xc5, 0xf8, 0x77, 0xf2, 0xc3),
		epilog("vzeroupper, jmp out of the function", peRSP+8, 0xc5, 0xf8, 0x77, 0xe9, 0, 0x10, 0, 0),
		epilog("add rsp, vzeroupper, ret", peRSP+0x20+8, 0x48, 0x83, 0xc4, 0x20, 0xc5, 0xf8, 0x77, 0xc3),
		epilog("registers are zeroed, ret", peRSP+8, 0xd9, 0xee, 0xdd, 0xd8, 0xdf, 0xc0, 0x31, 0xd2, 0x66,
			0x0f, 0xef, 0xc0, 0x0f, 0x57, 0xc9, 0x45, 0x31, 0xc0, 0xc3),
		epilog("add rsp, a register is zeroed, ret", peRSP+0x20+8, 0x48, 0x83, 0xc4, 0x20, 0x31, 0xc9, 0xc3),
		epilog("a register is zeroed, jmp out of the function", peRSP+8, 0x31, 0xd2, 0xe9, 0, 0x10, 0, 0),
		epilog("a register is zeroed, rep ret", peRSP+8, 0x31, 0xd2, 0xf3, 0xc3),
		body("a register is zeroed, jmp inside the function", 0x31, 0xd2, 0xeb, 0x10),
		body("movnti", 0x0f, 0xc3, 0x08),
		epilog("the return address is popped", peRSP+8, 0x59, 0x0f, 0xae, 0xe8, 0xff, 0xe1),
		epilog("the return address is popped into r11", peRSP+8, 0x41, 0x5b, 0x0f,
			0xae, 0xe8, 0x41, 0xff, 0xe3),
		epilog("add rsp, the return address is popped", peRSP+0x20+8, 0x48, 0x83, 0xc4, 0x20, 0x59,
			0x0f, 0xae, 0xe8, 0xff, 0xe1),
		epilog("an inlined return thunk", peRSP+8, 0xe8, 7, 0, 0, 0, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9,
			0x48, 0x8d, 0x64, 0x24, 8, 0xc3),
		body("an inlined thunk of a jump", 0xe8, 7, 0, 0, 0, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb,
			0xf9, 0x48, 0x89, 4, 0x24, 0xc3),
		body("pop, fence, jump by another register", 0x59, 0x0f, 0xae, 0xe8, 0xff, 0xe2),
		body("fild", 0xdf, 0x00, 0xc3),
		body("rbx is zeroed", 0x31, 0xdb, 0xc3),
		body("xmm6 is zeroed", 0x0f, 0x57, 0xf6, 0xc3),
		body("two registers", 0x31, 0xd1, 0xc3),
		body("vzeroupper, jmp inside the function", 0xc5, 0xf8, 0x77, 0xeb, 0x10),
		body("vzeroupper in the body", 0xc5, 0xf8, 0x77, 0x90),
		body("vzeroupper, add rsp, ret", 0xc5, 0xf8, 0x77, 0x48, 0x83, 0xc4, 0x20, 0xc3),
		body("vzeroupper cut short", 0xc5, 0xf8),
		body("nop", 0x90),
		body("jmp inside the function", 0xeb, 0x10),
		body("jmp to itself", 0xeb, 0xfe),
		body("jmp rel32 inside", 0xe9, 0x10, 0, 0, 0),
		body("jmp rax: a switch", 0xff, 0xe0),
		body("call rax", 0x48, 0xff, 0xd0),
		body("rep alone", 0xf3, 0x90),
		body("add rsp, then no end", 0x48, 0x83, 0xc4, 0x20, 0x90),
		body("sub rsp", 0x48, 0x83, 0xec, 0x20, 0xc3),
		body("add rax", 0x48, 0x83, 0xc0, 0x20, 0xc3),
		body("add esp", 0x83, 0xc4, 0x20, 0xc3),
		body("two adds", 0x48, 0x83, 0xc4, 0x20, 0x48, 0x83, 0xc4, 8, 0xc3),
		body("pop, then add", 0x5b, 0x48, 0x83, 0xc4, 8, 0xc3),
		body("lea rsp without frame register", 0x48, 0x8d, 0x65, 8, 0xc3),
		body("lea rsp, [rax+8] without frame register", 0x48, 0x8d, 0x60, 8, 0xc3),
		epilog("lea rsp, [rsp+8]", peRSP+8+8, 0x48, 0x8d, 0x64, 0x24, 8, 0xc3),
		body("lea rsp, [rsp+rax+8]", 0x48, 0x8d, 0x64, 4, 8, 0xc3),
		body("lea of another register", 0x48, 0x8d, 0x6d, 8, 0xc3),
		{name: "pops", sp: peRSP + 32, part: PEEpilog,
			im:    epilogImage(0, []byte{0x5b, 0x41, 0x5f, 0x40, 0x5e, 0xc3}),
			saved: map[int]uint64{context.RBX: peRSP, context.R15: peRSP + 8, context.RSI: peRSP + 16}},
		{name: "pop of a volatile register", sp: peRSP + 16, part: PEEpilog,
			im: epilogImage(0, []byte{0x59, 0xc3})},
		{name: "add and pop", sp: peRSP + 0x30, part: PEEpilog,
			im:    epilogImage(0, []byte{0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3}),
			saved: map[int]uint64{context.RBX: peRSP + 0x20}},
		framed("lea rsp, [rbp+8]", 5, rbp+8+8, PEEpilog, 0x48, 0x8d, 0x65, 8, 0xc3),
		framed("lea rsp, [rbp-8]", 5, rbp, PEEpilog, 0x48, 0x8d, 0x65, 0xf8, 0xc3),
		framed("lea rsp, [rbp+disp32]", 5, rbp+0x100+8, PEEpilog, 0x48, 0x8d, 0xa5, 0, 1, 0, 0, 0xc3),
		framed("lea rsp, [r12+8]", 12, r12+8+8, PEEpilog, 0x49, 0x8d, 0x64, 0x24, 8, 0xc3),
		framed("lea rsp, [r12+disp32]", 12, r12+0x100+8, PEEpilog, 0x49, 0x8d, 0xa4, 0x24, 0, 1, 0, 0, 0xc3),
		framed("lea rsp, [r12+rax+8]", 12, r12+48, PECode, 0x49, 0x8d, 0x64, 4, 8, 0xc3),
		framed("lea rsp, [rdi+8] with frame register rbp", 5, rbp+48, PECode, 0x48, 0x8d, 0x67, 8, 0xc3),
		framed("lea rsp, [r13+8] with frame register rbp", 5, rbp+48, PECode, 0x49, 0x8d, 0x65, 8, 0xc3),
	} {
		c.into = 16
		t.Run(c.name, c.check)
	}
}

// epilogImage has code 16 bytes into a function that has allocated 40 bytes.
func epilogImage(frameReg byte, code []byte) *pe.File {
	text := make([]byte, 16, 64)
	for i := range text {
		text[i] = 0x90
	}
	b := info(1, 0, 4, 0, 4, 0x42)
	if frameReg != 0 {
		b = info(1, 0, 8, frameReg, 8, 3, 4, 0x42)
	}
	return peImage(b, append(text, code...))
}

// TestPEEpilogInProlog: an epilog is looked for in the prolog's range too.
func TestPEEpilogInProlog(t *testing.T) {
	c := peEffect{name: "ret in the prolog",
		im: peImage(info(1, 0, 8, 0, 8, 0x42, 1, 0x50), []byte{0x55, 0x58, 0xc3}), into: 2,
		sp: peRSP + 8, part: PEEpilog}
	c.check(t)
}

// TestPEPoppedReturn: after the pop of a return address, the register has it.
func TestPEPoppedReturn(t *testing.T) {
	rcx := []byte{0x59, 0x0f, 0xae, 0xe8, 0xff, 0xe1} // pop rcx; lfence; jmp rcx
	r11 := []byte{0x41, 0x5b, 0x0f, 0xae, 0xe8, 0x41, 0xff, 0xe3}
	r10 := []byte{0x41, 0x5a, 0x0f, 0xae, 0xe8, 0xff, 0xe1} // the jump is to rcx
	for _, c := range []struct {
		name string
		code []byte
		into uint32
		part PEPart
		reg  int
	}{
		{"at the fence", rcx, 1, PEEpilog, context.RCX},
		{"at the jump", rcx, 4, PEEpilog, context.RCX},
		{"at the fence, r11", r11, 2, PEEpilog, context.R11},
		{"at the jump, r11", r11, 5, PEEpilog, context.R11},
		{"inside the pop", r11, 1, PECode, 0},
		{"another register's pop", r10, 2, PECode, 0},
	} {
		for _, have := range []bool{true, false} {
			regs := peRegs(peFn + 16 + c.into)
			regs.GPR[c.reg] = 0x1234
			if !have {
				regs.Known &^= 1 << c.reg
			}
			res, stop := StepPE(epilogImage(0, c.code).AMD64(),
				unwind.Instruction(uint64(peFn+16+c.into)), &regs, peMemory())
			switch {
			case res.Part != c.part:
				t.Errorf("%s: part %d, want %d", c.name, res.Part, c.part)
			case c.part == PEEpilog && !have && stop != unwind.Unreadable:
				t.Errorf("%s, unknown: %v, want unreadable", c.name, stop)
			case c.part == PEEpilog && have &&
				(stop != unwind.StopNone || regs.RIP != 0x1234 || regs.GPR[context.RSP] != peRSP ||
					regs.Known>>context.RCX&1 != 0):
				t.Errorf("%s: %v at %#x, sp %#x", c.name, stop, regs.RIP, regs.GPR[context.RSP])
			}
		}
	}
}

// TestPEPushedNumber: a push has just put a number on the stack, and unwind data do not list the push. The
// step recognizes it by the code and by the word. All steps agree, with and without cached rules.
func TestPEPushedNumber(t *testing.T) {
	push, xor, pop := "\x6a\xfd", "\x31\xd2", "\x59\x48\xf7\xf1"
	for _, c := range []struct {
		name, before, after string
		top                 uint64
		pushed              bool
	}{
		{"after the push", push, pop, ^uint64(2), true},
		{"behind another instruction", push + xor, pop, ^uint64(2), true},
		{"no pop", push, xor, ^uint64(2), false},
		{"zero", "\x6a\x00", pop, 0, false},
		{"before another push", "\x6a\x03" + "\x6a\x04", pop, 4, true},
		{"a number in another instruction before it", "\x83\xc0\x6a\x90\x6a\x03", pop, 3, true},
		{"another word", push, pop, 3, false},
		{"the number without its sign", push, pop, 0xfd, false},
		{"popped", push + "\x59", xor + pop, ^uint64(2), false},
		{"after a call", push + "\xe8\x00\x00\x00\x00", pop, ^uint64(2), false},
		{"after a change of RSP", push + "\x48\x83\xc4\x08", xor + pop, ^uint64(2), false},
		{"too far away", push + strings.Repeat(xor, 16), pop, ^uint64(2), false},
		{"inside an instruction", push + "\xb8\x00", pop, ^uint64(2), false},
		{"cut", "\x6a", xor + pop, 0x31, false},
	} {
		u, slow := peBoth(epilogImage(0, []byte(c.before+c.after)))
		data, _ := peMemory().Bytes(peStack, 0x20000)
		binary.LittleEndian.PutUint64(data[peRSP-peStack:], c.top)
		mem, regs, f := memory.New(memory.Run{Addr: peStack, Data: data}),
			peRegs(peFn+16+uint32(len(c.before))), unwind.Frame{}
		peTwice(t, u, slow, regs, true, mem, nil)
		want := uint64(peRSP + 48)
		if c.pushed {
			want += 8
		}
		if _, stop := stepOf(u, &regs, true, mem, nil, &f); stop != unwind.StopNone ||
			regs.GPR[context.RSP] != want || u.trust != unwind.TrustUnwindInfo {
			t.Errorf("%s: %v %v, RSP %#x, want %#x", c.name, stop, u.trust, regs.GPR[context.RSP], want)
		}
	}
	// The base of saves is the frame register.
	data, _ := peMemory().Bytes(peStack, 0x20000)
	binary.LittleEndian.PutUint64(data[peRSP-peStack:], ^uint64(2))
	regs := peRegs(peFn + 18)
	res, stop := StepPE(epilogImage(5, []byte(push+pop)).AMD64(), unwind.Instruction(peFn+18), &regs,
		memory.New(memory.Run{Addr: peStack, Data: data}))
	expect.True(t, stop == unwind.StopNone && res.Frame == peRSP+0x400,
		"with a frame register: %v %+v", stop, res)
}

// TestPETailJumps: a jump ends an epilog if it is to the first byte of a function or to code without an
// entry. A jump into the middle of a function, or to a fragment, ends none.
func TestPETailJumps(t *testing.T) {
	parent := peamd64.RuntimeFunction{Begin: 0x2000, End: 0x2100, Unwind: 0x6000}
	frag := peamd64.RuntimeFunction{Begin: 0x3000, End: 0x3100, Unwind: 0x6100}
	other := peamd64.RuntimeFunction{Begin: 0x4000, End: 0x4100, Unwind: 0x6200}
	bad := peamd64.RuntimeFunction{Begin: 0x4800, End: 0x4900, Unwind: 0x6300}
	more := []pe.Block{
		{RVA: 0x6000, Data: info(1, 0, 4, 0, 4, 0x42)},
		{RVA: 0x6100, Data: chained(0, parent)},
		{RVA: 0x6200, Data: info(1, 0, 0, 0)},
		{RVA: 0x6300, Data: info(7, 0, 0, 0)},
	}
	jmp := func(target uint32) []byte {
		d := target - (peFn + 5)
		return []byte{0xe9, byte(d), byte(d >> 8), byte(d >> 16), byte(d >> 24)}
	}
	for _, c := range []struct {
		name   string
		target uint32
		part   PEPart
		sp     uint64
	}{
		{"inside the parent", 0x2010, PECode, peRSP + 48},
		{"to the parent's first byte", 0x2000, PEEpilog, peRSP + 8},
		{"into another fragment", 0x3010, PECode, peRSP + 48},
		{"to another fragment's first byte", 0x3000, PECode, peRSP + 48},
		{"into another function", 0x4010, PECode, peRSP + 48},
		{"to another function's first byte", 0x4000, PEEpilog, peRSP + 8},
		{"to where no entry is", 0x9000, PEEpilog, peRSP + 8},
		{"to a function that cannot be read", 0x4810, PEEpilog, peRSP + 8},
		{"to the fragment's own first byte", peFn, PECode, peRSP + 48},
	} {
		im := peImageOf(pe.MachineAMD64, chained(0, parent), jmp(c.target),
			[]peamd64.RuntimeFunction{parent, frag, other, bad}, more...)
		e := peEffect{name: c.name, im: im, sp: c.sp, part: c.part}
		t.Run(c.name, e.check)
	}
}

// TestPEEpilogVersion2 goes through the epilogs a function lists: 5 bytes long
// (pop rbx, pop r15, pop rcx for the flags, ret), one at the end, one further up.
func TestPEEpilogVersion2(t *testing.T) {
	codes := []byte{5, 0x16, 0x40, 6, 12, 0x42, 4, 0x30, 3, 0xf0, 1, 2}
	im := peImage(info(2, 0, 12, 0, codes...), []byte{0xc3})
	all := map[int]uint64{context.RBX: peRSP + 40, context.R15: peRSP + 48}
	for _, c := range []peEffect{
		{name: "body", into: 0x80, sp: peRSP + 40 + 24 + 8, saved: all},
		{name: "a ret says nothing", into: 0, sp: peRSP + 8},
		{name: "before the last", into: peLen - 6, sp: peRSP + 40 + 24 + 8, saved: all},
		{name: "begin", into: peLen - 5, sp: peRSP + 32, part: PEEpilog,
			saved: map[int]uint64{context.RBX: peRSP, context.R15: peRSP + 8}},
		{name: "behind pop rbx", into: peLen - 4, sp: peRSP + 24, part: PEEpilog,
			saved: map[int]uint64{context.R15: peRSP}},
		{name: "behind pop r15", into: peLen - 2, sp: peRSP + 16, part: PEEpilog},
		{name: "behind the flags", into: peLen - 1, sp: peRSP + 8, part: PEEpilog},
		{name: "the other's begin", into: peLen - 0x40, sp: peRSP + 32, part: PEEpilog,
			saved: map[int]uint64{context.RBX: peRSP, context.R15: peRSP + 8}},
		{name: "the other's ret", into: peLen - 0x40 + 4, sp: peRSP + 8, part: PEEpilog},
		{name: "behind the other", into: peLen - 0x40 + 5, sp: peRSP + 40 + 24 + 8, saved: all},
	} {
		c.im = im
		t.Run(c.name, c.check)
	}
}

func TestPEEpilogVersion2More(t *testing.T) {
	parent := peamd64.RuntimeFunction{Begin: 0x2000, End: 0x2100, Unwind: 0x6000}
	fragment := append(info(2, peamd64.UNW_FLAG_CHAININFO, 0, 0, 2, 0x16, 0, 6), entries(parent)...)
	for _, c := range []peEffect{
		{name: "the parent's pushes",
			im:   peImage(fragment, nil, pe.Block{RVA: 0x6000, Data: info(1, 0, 5, 0, 5, 0x42, 1, 0x30)}),
			into: peLen - 2, sp: peRSP + 16, part: PEEpilog, saved: map[int]uint64{context.RBX: peRSP}},
		{name: "no pushes at all", im: peImage(info(2, 0, 4, 0, 1, 0x16, 0, 6, 4, 0x42), nil),
			into: peLen - 1, sp: peRSP + 8, part: PEEpilog},
		{name: "none at the end", im: peImage(info(2, 0, 4, 0, 1, 0x06, 0x20, 6, 4, 0x42), nil),
			into: peLen - 1, sp: peRSP + 48},
		{name: "padding ends the list",
			im:   peImage(info(2, 0, 4, 0, 1, 0x06, 0, 6, 0x20, 6, 0, 6, 4, 0x42), nil),
			into: peLen - 0x20, sp: peRSP + 48},
		{name: "no epilog codes",
			im: peImage(info(2, 0, 4, 0, 4, 0x42), []byte{0xc3}), into: 0x80, sp: peRSP + 48},
	} {
		t.Run(c.name, c.check)
	}
	regs := peRegs(peFn + peLen - 2)
	res, stop := StepPE(peImage(info(2, 0, 4, 0, 2, 0x16, 0, 6, 0, 0x0a), nil).AMD64(),
		unwind.Instruction(peFn+peLen-2), &regs, peMemory())
	expect.True(t, stop == unwind.StopNone && res.Machine && regs.RIP == word(peRSP) &&
		regs.GPR[context.RSP] == word(peRSP+24), "iretq: %v %+v", stop, res)
}

// TestPEEpilogVersion2Refused: the bytes of an epilog that undoes other operations are not known.
func TestPEEpilogVersion2Refused(t *testing.T) {
	for _, c := range []struct {
		name  string
		codes []byte
		why   peamd64.Reason
		stop  unwind.Stop
	}{
		{"pushes and flags", []byte{3, 0x30, 1, 2}, peamd64.OK, unwind.StopNone},
		{"a larger allocation below a push", []byte{3, 0x30, 1, 0x12}, peamd64.EpilogCodes,
			unwind.Unsupported},
		{"a push below the flags", []byte{3, 0x30, 2, 2, 1, 0x50}, peamd64.EpilogCodes, unwind.Unsupported},
		{"a saved register", []byte{3, 0x30, 1, 0x34, 4, 0}, peamd64.EpilogCodes, unwind.Unsupported},
		{"a push below a machine frame", []byte{3, 0x30, 1, 0x0a, 0, 0x50}, peamd64.EpilogCodes,
			unwind.Unsupported},
		{"a reserved operation", []byte{3, 0x30, 1, 7}, peamd64.BadOpcode, unwind.BadInfo},
		{"an operand past the count", []byte{3, 0x30, 1, 1}, peamd64.BadOperand, unwind.BadInfo},
	} {
		f := peImage(info(2, 0, 4, 0, append([]byte{3, 0x16, 0, 6}, c.codes...)...), nil)
		regs := peRegs(peFn + peLen - 3)
		res, stop := StepPE(f.AMD64(), unwind.Instruction(peFn+peLen-3), &regs, peMemory())
		expect.True(t, stop == c.stop && res.Reason == c.why && res.Part == PEEpilog, "%s: %v, %v, part %v",
			c.name, stop, res.Reason, res.Part)
	}
}
