package amd64

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Call frame information that compilers get wrong, where the code shows it. All
// of it is about an instruction at which a thread was interrupted: at calls it
// is right. Every reader of call frame information follows it astray.

// minLate is the length of a row that may be too late, bytes: at least a store of each
// of ten registers.
const minLate = 40

// catchUp corrects the CFA of a row that has not seen the stack pointer move. In the prolog
// of a Microsoft function, clang pushes RSI and RDI, lowers RSP, and advances the CFA only
// after ten XMM registers are saved. Such a row is long, begins with the sub, and names no
// saved register yet. The code of few other rows is read.
func catchUp(row *cfi.Row, m *module.Module, addr uint64) {
	if row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != dwarfRSP || row.CFA.Off < 24 ||
		row.Used != [2]uint64{1 << dwarfRA} || row.Hi-row.Lo < minLate || !m.SystemV() {
		return
	}
	const long, short = 7, 4
	code, into := codeAt(m, row.Lo+m.Bias, long), addr-row.Lo
	switch {
	case len(code) < long || code[0] != 0x48 || code[2] != 0xec: // sub rsp, imm
	case code[1] == 0x83 && into >= short:
		row.CFA.Off += int64(int8(code[3]))
	case code[1] == 0x81 && into >= long:
		row.CFA.Off += int64(int32(binary.LittleEndian.Uint32(code[3:])))
	}
}

// maxEpilog is how many instructions of an epilog are run.
const maxEpilog = 16

// epilog runs a frame's code to its return or tail call, if nothing but simple
// instructions lies before it: gcc's functions that realign their stack describe
// registers relative to RBP after they have restored it (mov r10, [rbp-8]; leave;
// ...; lea rsp, [r10-8]; ret). A jump is a tail call where the frame that ends at
// cfa is gone. straight reports whether the code may lead out of the function.
func (u *Unwinder) epilog(m *module.Module, cfa uint64, regs *Registers, mem *memory.Window) (to Registers, straight, ok bool) {
	if !m.SystemV() {
		return to, false, false
	}
	var e emulator
	e.enterFrame(regs)
	code := codeAt(m, regs.RIP, maxEpilog*8)
	for range maxEpilog {
		in := decode(code)
		if in.n == 0 {
			break
		}
		code = code[in.n:]
		switch e.run(&in, mem) {
		case flowNext:
			continue
		case flowReturn:
			to, ok = e.leave(regs, mem, nonvolatile)
			return to, true, ok
		case flowJump, flowIndirect:
			to, ok = e.leave(regs, mem, nonvolatile)
			return to, true, ok && to.GPR[context.RSP] == cfa && u.afterCall(to.RIP)
		}
		break
	}
	return to, false, false
}
