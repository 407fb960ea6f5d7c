package amd64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/unwind"
)

// unhijack repairs the step out of the CLR's return-hijack stub. The runtime
// replaces a managed frame's return address by the stub's, so the stub is
// entered by a ret while its call frame information assumes a call: the CFA it
// gives is a word too high, and the return address read at CFA-8 belongs to
// the caller's own frame. The stub pushes the true one first, at CFA-16.
//
// It is recognised by its outcome alone, so that no symbol of the runtime is
// needed: a return address that lies in no module and no managed range, above
// one that is managed. The callee-saved registers are as the stub's rules say.
func (u *Unwinder) unhijack(regs *Registers, mem *memory.Window, f *unwind.Frame) bool {
	if u.trust != unwind.TrustCFI || f.CFA != regs.GPR[context.RSP] {
		return false
	}
	ra := u.hijackedReturn(f.CFA, mem)
	if ra == 0 {
		return false
	}
	f.CFA -= 8
	regs.RIP, regs.GPR[context.RSP] = ra, f.CFA
	return true
}

// hijackedReturn is the return address at CFA-16 if it is managed, else 0.
func (u *Unwinder) hijackedReturn(cfa uint64, mem *memory.Window) uint64 {
	ra, ok := mem.Word(cfa - 16)
	if !ok || !u.table.IsManaged(unwind.LookupIP(ra, false)) {
		return 0
	}
	return ra
}
