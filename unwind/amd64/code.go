package amd64

import (
	"bytes"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/nearcall"
)

// What the bytes of code without unwind data show.

// codeWindow is how many bytes of code are read from an address on.
const codeWindow = 256

// trampolines are the signal trampolines: mov rax, 15 (rt_sigreturn); syscall. Compilers write mov eax, 15.
var trampolines = [...][]byte{{0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}, {0xb8, 15, 0, 0, 0, 0x0f, 0x05}}

// inTrampoline reports whether ip is at one of a signal trampoline's two instructions. A handler's return
// address is the first one's, without a call before it.
func inTrampoline(m *module.Module, ip uint64) bool {
	for _, code := range trampolines {
		start := ip - uint64(len(code)-2) // at the syscall
		if bytes.Equal(m.Bytes(ip, len(code)), code) ||
			start < ip && bytes.Equal(m.Bytes(start, len(code)), code) {
			return true
		}
	}
	return false
}

// The kernel's signal frame as the trampoline finds it: RSP at the ucontext.
const (
	ucGregs = 40 // uc_flags, uc_link, uc_stack
	ucRIP   = ucGregs + 16*8
)

// ucOrder is the order of uc_mcontext.gregs before RIP.
var ucOrder = [16]uint8{
	context.R8, context.R9, context.R10, context.R11, context.R12, context.R13, context.R14, context.R15,
	context.RDI, context.RSI, context.RBP, context.RBX, context.RDX, context.RAX, context.RCX, context.RSP,
}

// sigreturn reads the interrupted registers. It returns false if a word is missing.
func sigreturn(sp uint64, mem *memory.Window) (to Registers, ok bool) {
	for i, reg := range ucOrder {
		if to.GPR[reg], ok = mem.Word(sp + ucGregs + 8*uint64(i)); !ok {
			return to, false
		}
		to.Known |= 1 << reg
	}
	to.RIP, ok = mem.Word(sp + ucRIP)
	return to, ok
}

// afterCall reports whether a return address follows a call instruction, judged by the bytes before it.
// Managed code is always accepted: its bytes are in no file. Code outside all modules is not.
func (u *Unwinder) afterCall(ra uint64) bool {
	if ra < 8 {
		return false
	}
	if u.table.IsManaged(unwind.ReturnAddress(ra).Lookup()) {
		return true
	}
	i := u.table.Find(unwind.ReturnAddress(ra).Lookup())
	if i < 0 {
		return false
	}
	b := u.table.At(i).Bytes(ra-nearcall.Longest, nearcall.Longest)
	return len(b) == nearcall.Longest && nearcall.AMD64(b)
}
