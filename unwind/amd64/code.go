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

// restoreRT is the signal trampoline: mov rax, 15 (rt_sigreturn); syscall.
var restoreRT = []byte{0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}

const syscallAt = 7 // offset of its syscall

// inTrampoline reports whether ip is at one of a signal trampoline's two instructions. A handler's return
// address is the first one's, without a call before it.
func inTrampoline(m *module.Module, ip uint64) bool {
	if bytes.Equal(m.Bytes(ip, len(restoreRT)), restoreRT) {
		return true
	}
	start := ip - syscallAt
	return ip >= syscallAt && bytes.Equal(m.Bytes(start, len(restoreRT)), restoreRT)
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

// sigreturn reads the interrupted registers. False if a word is missing.
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

// A pltForm is one layout of a procedure linkage table entry: its bytes, a mask of those that are fixed, and
// the ends of its pushes.
type pltForm struct {
	code  []byte
	fixed []byte // 1 where code must match
	push  [2]int // offsets from which one more word is on the stack; 0 = never
	base  int    // words below the return address at the entry's first byte
}

// pltForms are those of GNU ld and lld for x86-64, lazy and with IBT.
var pltForms = [...]pltForm{
	{code: []byte{0xff, 0x25, 0, 0, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0},
		fixed: []byte{1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0}, push: [2]int{11}},
	{code: []byte{0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0, 0x0f, 0x1f, 0x40, 0},
		fixed: []byte{1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1}, push: [2]int{6}, base: 1},
	{code: []byte{0xf3, 0x0f, 0x1e, 0xfa, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0, 0x66, 0x90},
		fixed: []byte{1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1}, push: [2]int{9}},
	{code: []byte{0xf3, 0x0f, 0x1e, 0xfa, 0x68, 0, 0, 0, 0, 0xf2, 0xe9, 0, 0, 0, 0, 0x90},
		fixed: []byte{1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1}, push: [2]int{9}},
	{code: []byte{0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0, 0, 0, 0, 0x66, 0x0f, 0x1f, 0x44, 0, 0},
		fixed: []byte{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1}},
	{code: []byte{0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0, 0, 0, 0, 0x0f, 0x1f, 0x44, 0, 0},
		fixed: []byte{1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1}},
	{code: []byte{0xff, 0x25, 0, 0, 0, 0, 0x66, 0x90}, // .plt.got: 8-byte entries
		fixed: []byte{1, 1, 0, 0, 0, 0, 1, 1}},
}

// pltDepth returns how many words the linkage table's code at ip has pushed above the return address, if ip
// is in such code.
func pltDepth(m *module.Module, ip uint64) (words int, ok bool) {
	for i := range pltForms {
		form := &pltForms[i]
		start := ip &^ uint64(len(form.code)-1)
		if form.matches(m.Bytes(start, len(form.code))) {
			return form.depth(int(ip - start)), true
		}
	}
	return 0, false
}

func (p *pltForm) matches(b []byte) bool {
	if len(b) != len(p.code) {
		return false
	}
	for i, c := range p.code {
		if p.fixed[i] != 0 && b[i] != c {
			return false
		}
	}
	return true
}

func (p *pltForm) depth(at int) int {
	n := p.base
	for _, from := range p.push {
		if from != 0 && at >= from {
			n++
		}
	}
	return n
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
