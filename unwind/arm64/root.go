package arm64

import "github.com/seedwalk/seedwalk/unwind/module"

// Where stacks begin without unwind data that marks it: code entered by the kernel or through makecontext has
// no caller.

// maxRootBytes bounds an entry point's own code, bytes.
const maxRootBytes = 128

// isRoot reports whether a frame has no caller: it is at the start of __startcontext, or in the code at the
// image's entry point. There, x29 is 0, and no return is between the entry point and pc.
func isRoot(m *module.Module, regs *Registers) bool {
	if m == nil || !m.SystemV() {
		return false
	}
	if beginsContext(m, regs.PC) {
		return true
	}
	if !known(regs, regFP) || regs.X[regFP] != 0 {
		return false
	}
	at, ok := m.Entry()
	if !ok || regs.PC-at >= maxRootBytes {
		return false
	}
	for ; at < regs.PC; at += 4 {
		if w, ok := codeWord(m, at, nil); !ok || w&0xfffffc1f == 0xd65f0000 || w == 0 { // ret, or padding
			return false
		}
	}
	return true
}

// beginsContext reports whether pc is the first instruction of glibc's __startcontext, to which the function
// of a makecontext returns, whatever its unwind data: nop or bti c; mov x0, x19; cbnz x0, setcontext; b
// exit. Source: glibc sysdeps/unix/sysv/linux/aarch64/setcontext.S.
func beginsContext(m *module.Module, pc uint64) bool {
	const nop, btiC = 0xd503201f, 0xd503245f
	w, ok := codeWord(m, pc, nil)
	if ok && (w == nop || w == btiC) {
		pc += 4
		w, ok = codeWord(m, pc, nil)
	}
	if !ok || w != 0xaa1303e0 { // mov x0, x19
		return false
	}
	w, ok = codeWord(m, pc+4, nil)
	next, more := codeWord(m, pc+8, nil)
	return ok && more && w&0xff00001f == 0xb5000000 && next&0xfc000000 == 0x14000000
}
