package amd64

import (
	"bytes"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/unwind"
)

// hijackPushes begins the CLR's return-hijack stub: a push of rax makes room
// for the return address, then the callee-saved registers follow. No compiler
// saves rax first. Source: dotnet/runtime src/coreclr/vm/amd64/asmhelpers.S,
// OnHijackTripThread; the same in .NET 9 and 10.
var hijackPushes = []byte{0x50, 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54}

// foldHijack makes the stub's rules true: since no call entered it, its CFA is
// a word lower than they say, and the return address stands just below.
func foldHijack(row *cfi.Row, m *module.Module) {
	if row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != dwarfRSP || !startsStub(m, row.FDE.Lo) {
		return
	}
	row.CFA.Off -= 8
	for c := range row.Regs[:dwarfRA] {
		if row.Regs[c].Kind == cfi.Offset {
			row.Regs[c].Off += 8
		}
	}
}

// InHijackStub reports whether ip stands in the CLR's return-hijack stub. It
// interprets unwind data: not for every frame of a walk.
func (u *Unwinder) InHijackStub(ip uint64, exact bool) bool {
	addr := unwind.LookupIP(ip, exact)
	i := u.table.Find(addr)
	if i < 0 {
		return false
	}
	m := u.table.At(i)
	return m.CFI != nil && u.machine.Row(m.CFI, addr-m.Bias, &u.row) == cfi.None && startsStub(m, u.row.FDE.Lo)
}

// startsStub reports whether the stub's pushes stand at the image's address lo.
func startsStub(m *module.Module, lo uint64) bool {
	if m.ELF == nil {
		return false
	}
	b, ok := m.ELF.BytesAt(lo, len(hijackPushes))
	return ok && bytes.Equal(b, hijackPushes)
}

// unhijack repairs the step out of the CLR's return-hijack stub. The runtime
// replaces a managed frame's return address by the stub's, so the stub is
// entered by a ret while its call frame information assumes a call: the CFA it
// gives is a word too high, and the return address read at CFA-8 belongs to
// the caller's own frame. The stub pushes the true one first, at CFA-16.
//
// A stub of another make than foldHijack knows is recognised by its outcome: a return address that lies in no module and no managed range, above
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

// hijackPushesPE begins the stub of .NET 10 for Windows: mov rdx, rsp; push rax,
// which makes room for the return address; push rdx; push r15. Its unwind data
// knows neither push, so that it takes the word of rdx for the return address:
// the true one is a word higher. In .NET Core 2, which does not push rdx, its
// unwind data is right.
var hijackPushesPE = []byte{0x48, 0x8b, 0xd4, 0x50, 0x52, 0x41, 0x57}

// startsStubPE reports whether the function at rva is that stub.
func startsStubPE(f *pe.File, rva uint32) bool {
	fn, ok := f.AMD64().Lookup(rva)
	return ok && bytes.HasPrefix(f.Tail(fn.Begin, len(hijackPushesPE)), hijackPushesPE)
}

// unhijackPE repairs regs, to which a step out of that stub by its unwind data
// has led. The return address is there once the stub has called the runtime,
// which writes it first of all: before, no walk can leave the stub.
func (u *Unwinder) unhijackPE(regs *Registers, exact bool, mem *memory.Window) bool {
	cfa := regs.GPR[context.RSP]
	ra, ok := mem.Word(cfa)
	if exact || !ok || !u.table.IsManaged(unwind.LookupIP(ra, false)) {
		return false
	}
	regs.RIP, regs.GPR[context.RSP] = ra, cfa+8
	return true
}
