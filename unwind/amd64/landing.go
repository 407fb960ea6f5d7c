package amd64

import (
	"bytes"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
)

// Return addresses that somebody has replaced: see unwind.Landing.

// SetLandings makes l what is known of replaced return addresses. Rules made
// before are dropped.
func (u *Unwinder) SetLandings(l []unwind.Landing) {
	u.landings = l
	u.flush()
}

// landing returns the landing that begins with code, nil if none does.
func (u *Unwinder) landing(isPE bool, code []byte) *unwind.Landing {
	for i := range u.landings {
		if l := &u.landings[i]; l.Arch == context.ArchAMD64 && l.PE == isPE && bytes.HasPrefix(code, l.Code) {
			return l
		}
	}
	return nil
}

// maxLandingCode is how much of a function's code is compared with landings.
const maxLandingCode = 16

// foldLanding makes a landing's row true: the CFA and what counts from it move
// as the return address does.
func (u *Unwinder) foldLanding(row *cfi.Row, m *module.Module) {
	if row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != dwarfRSP {
		return
	}
	l := u.landingAt(m, row.FDE.Lo)
	if l == nil {
		return
	}
	row.CFA.Off += l.Off
	for c := range row.Regs[:dwarfRA] {
		if row.Regs[c].Kind == cfi.Offset {
			row.Regs[c].Off -= l.Off
		}
	}
}

// InLanding reports whether an address stands in a landing of an ELF image. It
// interprets unwind data: not for every frame of a walk.
func (u *Unwinder) InLanding(a unwind.Address) bool {
	addr := a.Lookup()
	i := u.table.Find(addr)
	if i < 0 {
		return false
	}
	m := u.table.At(i)
	return m.CFI != nil && u.machine.Row(m.CFI, addr-m.Bias, &u.row) == cfi.None && u.landingAt(m, u.row.FDE.Lo) != nil
}

// landingAt returns the landing whose code stands at an ELF image's address lo.
func (u *Unwinder) landingAt(m *module.Module, lo uint64) *unwind.Landing {
	if len(u.landings) == 0 || !m.SystemV() {
		return nil
	}
	return u.landing(false, codeAt(m, lo+m.Bias, maxLandingCode))
}

// unlisted repairs the step out of a landing that is not among those set. It is
// recognised by its outcome: a return address that lies in no module and no
// managed range, above one that is managed. The callee-saved registers are as the
// landing's rules say.
func (u *Unwinder) unlisted(regs *Registers, mem *memory.Window, f *unwind.Frame) bool {
	if u.by != unwind.TrustCFI || f.CFA != regs.GPR[context.RSP] {
		return false
	}
	ra := u.replacedReturn(f.CFA, mem)
	if ra == 0 {
		return false
	}
	f.CFA -= 8
	regs.RIP, regs.GPR[context.RSP] = ra, f.CFA
	return true
}

// replacedReturn is the return address at CFA-16 if it is managed, else 0.
func (u *Unwinder) replacedReturn(cfa uint64, mem *memory.Window) uint64 {
	ra, ok := mem.Word(cfa - 16)
	if !ok || !u.table.IsManaged(unwind.ReturnAddress(ra).Lookup()) {
		return 0
	}
	return ra
}

// landingPE returns the landing in whose function an RVA of a PE image lies.
func (u *Unwinder) landingPE(t *peamd64.Table, rva uint32) *unwind.Landing {
	if len(u.landings) == 0 {
		return nil
	}
	fn, ok := t.Lookup(rva)
	if !ok {
		return nil
	}
	return u.landing(true, t.Tail(fn.Begin, maxLandingCode))
}

// leaveLanding repairs regs, to which a step out of landing l by its unwind data
// has led.
func (u *Unwinder) leaveLanding(l *unwind.Landing, regs *Registers, exact bool, mem *memory.Window) bool {
	cfa := regs.GPR[context.RSP] + uint64(l.Off)
	ra, ok := mem.Word(cfa - 8)
	if exact && l.Late || !ok || !u.table.IsManaged(unwind.ReturnAddress(ra).Lookup()) {
		return false
	}
	regs.RIP, regs.GPR[context.RSP] = ra, cfa
	return true
}
