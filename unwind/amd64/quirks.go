package amd64

import (
	"bytes"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Call frame information that compilers get wrong, where the code shows it. All
// of it is about an instruction at which a thread was interrupted: at calls it
// is right. Every reader of call frame information follows it astray.

// maxProlog is how far into a function a prolog is looked for, and maxLate how
// far a row may have fallen behind it.
const (
	maxProlog = 256
	maxLate   = 112
)

// subRSP begins sub rsp, imm of 8 and of 32 bits.
var subRSP = [...][]byte{{0x48, 0x83, 0xec}, {0x48, 0x81, 0xec}}

// catchUp corrects the CFA of a row that has not seen the stack pointer move:
// clang advances it in a Microsoft function's prolog only after ten XMM registers
// were saved. A row has one distance from the stack pointer to the CFA, so
// whatever its own instructions before addr did to the stack pointer is missing
// from it.
func catchUp(row *cfi.Row, m *module.Module, addr uint64) {
	into := addr - row.Lo
	if row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != dwarfRSP || into == 0 || into > maxLate || addr-row.FDE.Lo > maxProlog || !m.SystemV() {
		return
	}
	code := m.Bytes(row.Lo+m.Bias, int(into))
	if len(code) < int(into) || !bytes.Contains(code, subRSP[0]) && !bytes.Contains(code, subRSP[1]) {
		return
	}
	var e emulator
	const from = 1 << 40
	e.set(context.RSP, value64{from, knownValue})
	for len(code) > 0 {
		in := decode(code)
		if in.n == 0 || e.run(&in, nil) != flowNext {
			return
		}
		code = code[in.n:]
	}
	if sp := e.get(context.RSP); sp.kind == knownValue {
		row.CFA.Off += int64(from - sp.v)
	}
}

// maxEpilog is how many instructions of an epilog are run.
const maxEpilog = 16

// epilog runs a frame's code to its return or tail call, if nothing but simple
// instructions lies before it: gcc's functions that realign their stack describe
// registers relative to RBP after they have restored it (mov r10, [rbp-8]; leave;
// ...; lea rsp, [r10-8]; ret). straight tells that the code leads out of the
// function, whatever the registers are.
func (u *Unwinder) epilog(m *module.Module, regs *Registers, mem *memory.Window) (to Registers, straight, ok bool) {
	if !m.SystemV() {
		return to, false, false
	}
	var e emulator
	e.enterFrame(regs)
	ip, code := regs.RIP, codeAt(m, regs.RIP, maxEpilog*8)
	for range maxEpilog {
		in := decode(code)
		if in.n == 0 {
			break
		}
		ip, code = ip+uint64(in.n), code[in.n:]
		switch e.run(&in, mem) {
		case flowNext:
			continue
		case flowReturn:
			to, ok = e.leave(regs, mem, nonvolatile)
			return to, true, ok
		case flowJump:
			if !u.entry(m, ip+uint64(in.disp)) {
				return to, false, false
			}
			to, ok = e.leave(regs, mem, nonvolatile)
			return to, true, ok && u.afterCall(to.RIP)
		}
		break
	}
	return to, false, false
}

// entry reports whether a function begins at addr: the return address is on top of
// the stack there. It uses u.row.
func (u *Unwinder) entry(m *module.Module, addr uint64) bool {
	at := addr - m.Bias
	if m.CFI == nil || u.machine.Row(m.CFI, at, &u.row) != cfi.None {
		return false
	}
	cfa := &u.row.CFA
	return u.row.FDE.Lo == at && cfa.Kind == cfi.RegisterOffset && cfa.Reg == dwarfRSP && cfa.Off == 8
}
