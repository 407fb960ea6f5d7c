package arm64

import (
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// TestScan executes code forward to its return. The word 8 above SP is a return address; x30 is codeCall.
func TestScan(t *testing.T) {
	const (
		ret, bl     = 0xd65f03c0, 0x94000010
		add         = 0x91000400             // add x0, x0, #1
		down, up    = 0xd10043ff, 0x910043ff // sub, add sp, sp, #16
		loads       = 0xf94007fe             // ldr x30, [sp, #8]
		into19      = 0xf90003f3             // str x19, [sp]
		into, outOf = 0xf90003fe, 0xf94003fe // str, ldr x30, [sp]
	)
	for _, c := range []struct {
		name string
		code []uint32
		ok   bool
		up   uint64 // how far SP rises
	}{
		{"a shifted size", []uint32{0x914007ff, ret}, true, 4096}, // add sp, sp, #1, lsl #12
		{"a comparison of SP", []uint32{0xf10043ff, ret}, false, 0},
		{"two stores to one word", []uint32{into19, into, outOf, ret}, true, 0},
		{"the most stores", slices.Concat(slices.Repeat([]uint32{into}, 16), []uint32{ret}), true, 0},
		{"a store too many", slices.Concat(slices.Repeat([]uint32{into}, 17), []uint32{ret}), false, 0},
		{"a load of d0 and d1", []uint32{0x6d4007e0, ret}, true, 0},
		{"a load of d0 and d8", []uint32{0x6d4023e0, ret}, false, 0},
		{"a load of d8 and d0", []uint32{0x6d4003e8, ret}, false, 0},
		{"a load that moves x29", []uint32{0xa8c153b3, ret}, false, 0},
		{"behind a call", []uint32{bl, add, down, up, loads, ret}, true, 0},
		{"behind a call, a function's beginning", []uint32{bl, down, up, loads, ret}, false, 0},
		{"behind a call, x30 is the callee's", []uint32{bl, add, ret}, false, 0},
	} {
		table, s, regs := makeTable(t, c.code), newStack(), start(codeLo, sp0)
		regs.X[29] = sp0
		s.Set(sp0+8, codeCall)
		at := stateOf(&regs, true)
		to, ok := leave(table.At(0), &at, s.Window(), false)
		if ok != c.ok || ok && (to.PC != codeCall || to.Sp != sp0+c.up) {
			t.Errorf("%s: %v, pc %#x, sp %#x", c.name, ok, to.PC, to.Sp)
		}
	}
}

// TestEmulator checks the value of a register after some code. SP and x1 are known at its start.
func TestEmulator(t *testing.T) {
	for _, c := range []struct {
		name string
		code []uint32
		reg  int
		want value64
	}{
		{"movk replaces bits", []uint32{0xd2800062, 0xf2800082}, 2, value64{4, knownValue}},
		{"the status of an exclusive store", []uint32{0xd2800062, 0xc8027c20}, 2, value64{}},
	} {
		var e emulator
		e.regs[regSP], e.regs[1] = value64{sp0, knownValue}, value64{sp0, knownValue}
		for _, w := range c.code {
			e.run(w, nil)
		}
		expect.Equal(t, e.regs[c.reg], c.want, c.name)
	}
}

// TestEmulatorBranches checks where conditional branches lead.
func TestEmulatorBranches(t *testing.T) {
	for w, want := range map[uint32]int64{
		0x54000040: 8, 0x54ffffe1: -4, // b.eq, b.ne
		0xb4000040: 8, 0xb5ffffe0: -4, // cbz, cbnz
		0x36f80040: 8, 0x37ffffe0: -4, // tbz, tbnz of bit 31
	} {
		var e emulator
		how, distance := e.run(w, nil)
		expect.True(t, how == flowBranch && distance == want, "%#x: %v by %d, want %d", w, how,
			distance, want)
	}
}

// TestEmulatorVectors checks from which addresses vector registers were loaded.
func TestEmulatorVectors(t *testing.T) {
	for _, c := range []struct {
		name string
		w    uint32
		at   uint64
	}{
		{"ldr q8, [sp, #16]", 0x3dc007e8, sp0 + 16},
		{"ldr d8, [sp, #8]", 0xfd4007e8, sp0 + 8},
		{"ldp q9, q8, [sp]", 0xad4023e9, sp0 + 16},
	} {
		var e emulator
		e.regs[regSP] = value64{sp0, knownValue}
		e.run(c.w, nil)
		expect.Equal(t, e.vectors[0], c.at, c.name)
	}
}

// TestStepFromBeginningBelow: a word below SP is stale, although the function stored x30 there.
func TestStepFromBeginningBelow(t *testing.T) {
	const begin = codeLo + 4
	// ret; stur x30, [sp, #-16]; bl; b
	u := unwinder(makeTable(t, []uint32{0xd65f03c0, 0xf81f03fe, 0x94000040, 0x17ffffff}))
	s, r := newStack(), start(begin+8, sp0)
	s.Set(sp0-16, codeCall)
	at := stateOf(&r, false)
	var f unwind.Frame
	expect.Equal(t, u.Step(&at, s.Window(), &unwind.Bounds{Follow: true}, &f), unwind.NoInfo,
		"pc %#x, sp %#x", at.Regs.ARM64.PC, at.Regs.ARM64.Sp)
}
