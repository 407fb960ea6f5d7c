package amd64

import (
	"bytes"
	"slices"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// Return addresses that somebody has replaced: see unwind.ReturnHook.

// SetReturnHooks makes l what is known of replaced return addresses. Rules made
// before are dropped.
func (u *Unwinder) SetReturnHooks(l []unwind.ReturnHook) {
	u.hooks, u.pushes, u.unknown = l, nil, 0
	for i := range l {
		switch {
		case l[i].Arch != context.ArchAMD64 || l[i].PE:
		case len(l[i].Code) == 0:
			u.unknown = l[i].Off
		default:
			u.pushes = append(u.pushes, pushesOf(l[i].Code))
		}
	}
	u.flush()
}

// slotDWARF are slotRegs in DWARF numbers.
var slotDWARF = [len(slotRegs)]int{dwarfRBX, dwarfRBP, dwarfR12, 13, 14, 15}

// pushes is what code that begins with pushes does: how many there are with the
// return address, and in which word below the CFA each register of a rule's slots
// then is; 0 of those that it does not push.
type pushes struct {
	words int64
	at    [len(slotRegs)]int64
}

func pushesOf(code []byte) (p pushes) {
	for p.words = 1; ; p.words++ {
		in := x86.Decode(code)
		if in.Size == 0 || in.Table != 0 || in.Op&0xf8 != 0x50 {
			return p
		}
		if i := slices.Index(slotRegs[:], in.Op&7|in.REX&1<<3); i >= 0 {
			p.at[i] = p.words + 1
		}
		code = code[in.Size:]
	}
}

// agree reports whether a row that holds at a call may be of code with these
// pushes. A return hook need not say that they save registers.
func (p *pushes) agree(row *cfi.Row) bool {
	for i, word := range p.at {
		rule := &row.Regs[slotDWARF[i]]
		if word != 0 && rule.Kind != cfi.Unspecified && (rule.Kind != cfi.Offset || rule.Off != -8*word) {
			return false
		}
	}
	return row.CFA.Off >= 8*p.words
}

// mayBeHook reports whether a row can be a return hook's by what it says of registers:
// the code of most functions, one page of text each, then need not be read.
// Where a function was interrupted its pushes may not have run yet.
func (u *Unwinder) mayBeHook(row *cfi.Row, a unwind.Address) bool {
	if a.Exact {
		return len(u.pushes) > 0
	}
	for i := range u.pushes {
		if u.pushes[i].agree(row) {
			return true
		}
	}
	return false
}

// mayBeHookSlots is mayBeHook for a return address whose registers are in a rule's slots.
func (u *Unwinder) mayBeHookSlots(slots uint64, off int64) bool {
	for i := range u.pushes {
		if u.pushes[i].agreeSlots(slots, off) {
			return true
		}
	}
	return false
}

func (p *pushes) agreeSlots(slots uint64, off int64) bool {
	for i, word := range p.at {
		if is := int64(slots >> (4 * i) & 15); word != 0 && is != 0 && is != word {
			return false
		}
	}
	return off >= 8*p.words
}

// hook returns the return hook that begins with code, nil if none does.
func (u *Unwinder) hook(isPE bool, code []byte) *unwind.ReturnHook {
	for i := range u.hooks {
		if l := &u.hooks[i]; l.Arch == context.ArchAMD64 && l.PE == isPE && len(l.Code) != 0 && bytes.HasPrefix(code, l.Code) {
			return l
		}
	}
	return nil
}

// maxHookCode is how much of a function's code is compared with return hooks.
const maxHookCode = 16

// foldHook makes a return hook's row true: the CFA and what counts from it move
// as the return address does.
func (u *Unwinder) foldHook(row *cfi.Row, m *module.Module, a unwind.Address) {
	if row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != dwarfRSP || !u.mayBeHook(row, a) {
		return
	}
	l := u.hookAt(m, row.FDE.Lo)
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

// InReturnHook reports whether an address is in a return hook of an ELF image. It
// interprets unwind data: not for every frame of a walk.
func (u *Unwinder) InReturnHook(a unwind.Address) bool {
	addr := a.Lookup()
	i := u.table.Find(addr)
	if i < 0 {
		return false
	}
	m := u.table.At(i)
	return m.CFI != nil && u.machine.Row(m.CFI, addr-m.Bias, &u.row) == cfi.None && u.hookAt(m, u.row.FDE.Lo) != nil
}

// hookAt returns the return hook whose code is at an ELF image's address lo.
func (u *Unwinder) hookAt(m *module.Module, lo uint64) *unwind.ReturnHook {
	if len(u.hooks) == 0 || !m.SystemV() {
		return nil
	}
	return u.hook(false, m.Bytes(lo+m.Bias, maxHookCode))
}

// unlisted repairs the step out of a return hook whose code is not known, if the
// return hooks that are set include such. It is called where a return address lies in
// no module and no managed range. The callee-saved registers are as the return hook's
// rules say.
func (u *Unwinder) unlisted(regs *Registers, mem *memory.Window, f *unwind.Frame) bool {
	if u.by != unwind.TrustCFI || f.CFA != regs.GPR[context.RSP] {
		return false
	}
	ra := u.replacedReturn(f.CFA, f.SP, mem)
	if ra == 0 {
		return false
	}
	f.CFA += uint64(u.unknown)
	regs.RIP, regs.GPR[context.RSP] = ra, f.CFA
	return true
}

// replacedReturn is the return address of the frame from sp to cfa, if it is a return hook
// whose code is not known; 0 if it is none. A return hook has made room for it: a word below
// sp is left over from a function that has returned.
func (u *Unwinder) replacedReturn(cfa, sp uint64, mem *memory.Window) uint64 {
	at := cfa - 8 + uint64(u.unknown)
	if u.unknown == 0 || at < sp {
		return 0
	}
	ra, ok := mem.Word(at)
	if !ok || !u.table.IsManaged(unwind.ReturnAddress(ra).Lookup()) {
		return 0
	}
	return ra
}

// hookPE returns the return hook in whose function an RVA of a PE image lies.
func (u *Unwinder) hookPE(t *peamd64.Table, rva uint32) *unwind.ReturnHook {
	if len(u.hooks) == 0 {
		return nil
	}
	fn, ok := t.Lookup(rva)
	if !ok {
		return nil
	}
	return u.hookOf(t, fn)
}

// hookOf returns the return hook that the function of an entry is, nil if it is none.
func (u *Unwinder) hookOf(t *peamd64.Table, fn peamd64.RuntimeFunction) *unwind.ReturnHook {
	if len(u.hooks) == 0 {
		return nil
	}
	return u.hook(true, t.Tail(fn.Begin, maxHookCode))
}

// leaveHook repairs regs, to which a step by its unwind data out of return hook l
// at the address from has led.
func (u *Unwinder) leaveHook(l *unwind.ReturnHook, from unwind.Address, regs *Registers, mem *memory.Window) bool {
	cfa := regs.GPR[context.RSP] + uint64(l.Off)
	ra, ok := mem.Word(cfa - 8)
	if from.Exact && l.Late || !ok || !u.table.IsManaged(unwind.ReturnAddress(ra).Lookup()) {
		return false
	}
	regs.RIP, regs.GPR[context.RSP] = ra, cfa
	return true
}

// HookReturn returns the caller's registers where s is in a return hook of a PE image, but for
// its ip: that is what is in the return address's place, which a walk refuses as
// long as it is not known to be managed code. Whoever makes the module table may find
// out, and whoever knows the runtime what it will write there.
func (u *Unwinder) HookReturn(s *unwind.State, mem *memory.Window) (to Registers, ok bool) {
	at := s.Address()
	i := u.table.Find(at.Lookup())
	if i < 0 || u.table.At(i).PE == nil {
		return to, false
	}
	m := u.table.At(i)
	t := m.PE.AMD64()
	l := u.hookPE(t, uint32(at.Lookup()-m.Bias))
	if l == nil || l.Interrupted || at.Exact && l.Late {
		return to, false
	}
	to = s.Regs.AMD64
	res, stop := StepPE(t, unwind.Address{IP: at.IP - m.Bias, Exact: at.Exact}, &to, mem)
	if stop != unwind.StopNone || res.Part != PECode {
		return to, false
	}
	to.GPR[context.RSP] += uint64(l.Off)
	to.RIP, ok = mem.Word(to.GPR[context.RSP] - 8)
	return to, ok
}
