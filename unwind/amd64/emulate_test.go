package amd64

import (
	"math"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// TestEmulator: the effect of one instruction on the known values.
func TestEmulator(t *testing.T) {
	const sp, bp = 0x7000_0000, 0x7000_0100
	known, lost := func(v uint64) value64 { return value64{v, knownValue} }, value64{}
	for _, c := range []struct {
		name string
		code []byte
		reg  int
		want value64
		flow flow
	}{
		{"push", []byte{0x53}, context.RSP, known(sp - 8), flowNext},
		{"push imm", []byte{0x6a, 1}, context.RSP, known(sp - 8), flowNext},
		{"push mem", []byte{0xff, 0x30}, context.RSP, known(sp - 8), flowNext},
		{"pushf", []byte{0x9c}, context.RSP, known(sp - 8), flowNext},
		{"pop", []byte{0x58}, context.RSP, known(sp + 8), flowNext},
		{"pop r/m", []byte{0x8f, 0xc3}, context.RBX, lost, flowNext}, // no memory
		{"pop r/m, rsp", []byte{0x8f, 0xc3}, context.RSP, known(sp + 8), flowNext},
		{"XOP", []byte{0x8f, 0xeb}, context.RBX, known(3), flowStop},
		{"sub imm8", []byte{0x48, 0x83, 0xec, 0x20}, context.RSP, known(sp - 32), flowNext},
		{"add imm32", []byte{0x48, 0x81, 0xc4, 0, 1, 0, 0}, context.RSP, known(sp + 256), flowNext},
		{"and", []byte{0x48, 0x83, 0xe4, 0xe0}, context.RSP, known(sp &^ 31), flowNext},
		{"or", []byte{0x48, 0x83, 0xcc, 1}, context.RSP, lost, flowNext},
		{"cmp", []byte{0x48, 0x83, 0xfc, 1}, context.RSP, known(sp), flowNext},
		{"sub register", []byte{0x48, 0x29, 0xdc}, context.RSP, known(sp - 3), flowNext},
		{"add register", []byte{0x48, 0x03, 0xe3}, context.RSP, known(sp + 3), flowNext},
		{"sub an unknown register", []byte{0x48, 0x29, 0xc4}, context.RSP, lost, flowNext},
		{"leave", []byte{0xc9}, context.RSP, known(bp + 8), flowNext},
		{"leave, rbp", []byte{0xc9}, context.RBP, lost, flowNext}, // no memory
		{"mov", []byte{0x48, 0x89, 0xec}, context.RSP, known(bp), flowNext},
		{"mov of 32 bits", []byte{0x89, 0xeb}, context.RBX, lost, flowNext},
		{"lea", []byte{0x48, 0x8d, 0x65, 0xf0}, context.RSP, known(bp - 16), flowNext},
		{"lea with an index", []byte{0x48, 0x8d, 0x64, 0x05, 0}, context.RSP, lost, flowNext},
		{"lea of 32 bits", []byte{0x8d, 0x5d, 0xf0}, context.RBX, lost, flowNext},
		{"xor", []byte{0x31, 0xdb}, context.RBX, lost, flowNext},
		{"mov imm", []byte{0xbb, 1, 0, 0, 0x80}, context.RBX, known(0x80000001), flowNext},
		{"mov imm, sign extended", []byte{0x48, 0xc7, 0xc3, 1, 0, 0, 0}, context.RBX, lost, flowNext},
		{"call keeps what functions preserve", []byte{0xe8, 0, 0, 0, 0}, context.RBX, known(3), flowCall},
		{"call loses rcx", []byte{0xe8, 0, 0, 0, 0}, context.RCX, lost, flowCall},
		{"call [rip] loses rcx", []byte{0xff, 0x15, 0, 0, 0, 0}, context.RCX, lost, flowCall},
		{"call rax loses rcx", []byte{0xff, 0xd0}, context.RCX, lost, flowCall},
		{"ret", []byte{0xc3}, context.RSP, known(sp), flowReturn},
		{"ret 0", []byte{0xc2, 0, 0}, context.RSP, known(sp), flowReturn},
		{"jmp", []byte{0xeb, 2}, context.RSP, known(sp), flowJump},
		{"jcc", []byte{0x0f, 0x84, 0, 0, 0, 0}, context.RSP, known(sp), flowBranch},
		{"jmp rax", []byte{0xff, 0xe0}, context.RSP, known(sp), flowIndirect},
		{"ud2", []byte{0x0f, 0x0b}, context.RSP, known(sp), flowStop},
		{"hlt", []byte{0xf4}, context.RSP, known(sp), flowStop},
		{"mov bh", []byte{0xb7, 1}, context.RBX, lost, flowNext},
		{"cpuid", []byte{0x0f, 0xa2}, context.RBX, lost, flowNext},
		{"xchg", []byte{0x48, 0x87, 0xdd}, context.RBP, lost, flowNext},
		{"cmov", []byte{0x48, 0x0f, 0x44, 0xd8}, context.RBX, lost, flowNext},
		{"sete bl", []byte{0x0f, 0x94, 0xc3}, context.RBX, lost, flowNext},
		{"imul", []byte{0x48, 0x6b, 0xdb, 3}, context.RBX, lost, flowNext},
		{"test", []byte{0xf6, 0xc3, 1}, context.RBX, known(3), flowNext},
		{"not", []byte{0xf6, 0xd3}, context.RBX, lost, flowNext},
		{"not of 64 bits", []byte{0x48, 0xf7, 0xd3}, context.RBX, lost, flowNext},
		{"test of 32 bits", []byte{0xf7, 0xc3, 1, 0, 0, 0}, context.RBX, known(3), flowNext},
		{"div", []byte{0xf7, 0xf3}, context.RBX, known(3), flowNext},
		{"andn", []byte{0xc4, 0xe2, 0xe0, 0xf2, 0xd8}, context.RBX, lost, flowNext},
		{"blsr", []byte{0xc4, 0xe2, 0xe0, 0xf3, 0xc8}, context.RBX, lost, flowNext},
		{"vpaddd", []byte{0xc5, 0xe1, 0xfe, 0xd8}, context.RBX, known(3), flowNext},
	} {
		t.Run(c.name, func(t *testing.T) {
			var e emulator
			e.set(context.RSP, known(sp))
			e.set(context.RBP, known(bp))
			e.set(context.RBX, known(3))
			e.set(context.RCX, known(4))
			in := x86.Decode(c.code)
			must.Equal(t, int(in.Size), len(c.code), "bytes")
			how := e.run(&in, nil)
			expect.True(t, how == c.flow && e.regs[c.reg] == c.want,
				"flow %d, register %d is %+v; want %d, %+v", how, c.reg, e.regs[c.reg], c.flow, c.want)
		})
	}
}

// TestEmulatorStores: pops and loads return the values that the code pushed and saved.
func TestEmulatorStores(t *testing.T) {
	var e emulator
	e.set(context.RSP, value64{0x1000, knownValue})
	e.set(context.RBX, value64{context.RBX, entryValue})
	for _, code := range [][]byte{{0x53}, {0x48, 0x89, 0x5c, 0x24, 0xf0}, {0x31, 0xdb},
		{0x48, 0x8b, 0x6c, 0x24, 0xf0}, {0x5b}} {
		in := x86.Decode(code)
		e.run(&in, nil)
	}
	for _, reg := range []uint8{context.RBX, context.RBP} {
		expect.Equal(t, e.get(reg), value64{context.RBX, entryValue}, "register %d", reg)
	}
}

// TestEmulatorRoom: unknown values leave room for saved registers.
func TestEmulatorRoom(t *testing.T) {
	var e emulator
	e.set(context.RSP, value64{0x1000, knownValue})
	e.set(context.RBX, value64{context.RBX, entryValue})
	for i := range maxStores + 1 {
		code := []byte{0x50} // push rax, which is unknown
		if i == maxStores {
			code[0] = 0x53
		}
		in := x86.Decode(code)
		e.run(&in, nil)
	}
	expect.Equal(t, e.load(e.get(context.RSP).v, nil), e.get(context.RBX))
}

// TestEmulatorPops: a pop into a register or into memory. The address in memory is computed after the pop.
func TestEmulatorPops(t *testing.T) {
	var e emulator
	e.set(context.RSP, value64{0x1000, knownValue})
	e.set(context.RBX, value64{7, knownValue})
	e.set(context.RBP, value64{9, knownValue})
	for _, code := range [][]byte{
		{0x53},                   // push rbx
		{0x55},                   // push rbp
		{0x8f, 0x44, 0x24, 0x10}, // pop [rsp+16]
		{0x41, 0x8f, 0xc4},       // pop r12, long
	} {
		in := x86.Decode(code)
		e.run(&in, nil)
	}
	v := e.load(0x1008, nil)
	expect.True(t, v == (value64{9, knownValue}) && e.get(context.R12) == (value64{7, knownValue}),
		"popped %+v and %+v", v, e.get(context.R12))
}

// TestEmulatorStoresAgain: the last store to a place counts, also that of a number. A store of 32 bits saves
// no register.
func TestEmulatorStoresAgain(t *testing.T) {
	var e emulator
	e.set(context.RSP, value64{0x1000, knownValue})
	e.set(context.RBX, value64{7, knownValue})
	e.set(context.RBP, value64{9, knownValue})
	for _, code := range [][]byte{
		{0x48, 0x89, 0x5c, 0x24, 0xf0},                         // mov [rsp-16], rbx
		{0x48, 0x89, 0x6c, 0x24, 0xf0},                         // mov [rsp-16], rbp
		{0x89, 0x5c, 0x24, 0xe0},                               // mov [rsp-32], ebx
		{0x48, 0x89, 0x5c, 0x24, 0xd0},                         // mov [rsp-48], rbx
		{0x48, 0xc7, 0x44, 0x24, 0xd0, 0xff, 0xff, 0xff, 0xff}, // mov qword [rsp-48], -1
	} {
		in := x86.Decode(code)
		e.run(&in, nil)
	}
	expect.Equal(t, e.load(0xff0, nil), value64{9, knownValue}, "stored twice")
	expect.Equal(t, e.load(0xfd0, nil), value64{math.MaxUint64, knownValue}, "stored a number")
	v := e.load(0xfe0, nil)
	expect.True(t, v.kind == unknownValue, "stored half: %+v", v)
}
