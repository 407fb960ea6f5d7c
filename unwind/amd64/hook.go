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

// Return addresses that were replaced: see unwind.ReturnHook.

// SetReturnHooks sets the known return hooks. It drops existing rules.
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

// slotDWARF are the registers of a rule's slots, in order: DWARF numbers.
var slotDWARF = [6]int{dwarfRBX, dwarfRBP, dwarfR12, 13, 14, 15}

// pushes describes code that begins with pushes: their number including the return address, and the word
// below the CFA of each register in a rule's slots; 0 for registers that it does not push.
type pushes struct {
	words int64
	at    [len(slotDWARF)]int64
}

func pushesOf(code []byte) (p pushes) {
	for p.words = 1; ; p.words++ {
		in := x86.Decode(code)
		if in.Size == 0 || in.Table != 0 || in.Op&0xf8 != 0x50 {
			return p
		}
		if i := slices.Index(slotDWARF[:], slices.Index(fromDWARF[:], in.Op&7|in.REX&1<<3)); i >= 0 {
			p.at[i] = p.words + 1
		}
		code = code[in.Size:]
	}
}

// mayBeHook reports whether a return address may be in a return hook, whose row need not list its pushes:
// slots and off are those of the address's rule. It avoids reading the code of most functions, which touches
// a page of text each.
func (u *Unwinder) mayBeHook(slots uint64, off int64) bool {
	return slices.ContainsFunc(u.pushes, func(p pushes) bool {
		for i, word := range p.at {
			if is := int64(slots >> (4 * i) & 15); word != 0 && is != 0 && is != word {
				return false
			}
		}
		return off >= 8*p.words
	})
}

// slotsOf returns the slots of any row; maxSlot, which no hook has, for a register that is not in a slot.
func slotsOf(row *cfi.Row) (slots uint64) {
	for i, c := range slotDWARF {
		rule, slot := &row.Regs[c], uint64(maxSlot)
		if at := uint64(-rule.Off); rule.Kind == cfi.Offset && at&7 == 0 && at < 8*maxSlot {
			slot = at / 8
		}
		if rule.Kind != cfi.Unspecified {
			slots |= slot << (4 * i)
		}
	}
	return slots
}

// hook returns the return hook that begins with code, nil if none does.
func (u *Unwinder) hook(isPE bool, code []byte) *unwind.ReturnHook {
	for i := range u.hooks {
		if l := &u.hooks[i]; l.Arch == context.ArchAMD64 && l.PE == isPE && len(l.Code) != 0 &&
			bytes.HasPrefix(code, l.Code) {
			return l
		}
	}
	return nil
}

// maxHookCode is how many bytes of a function are compared with return hooks.
const maxHookCode = 16

// foldHook corrects a return hook's row: the CFA, and everything relative to it, moves by the hook's Off.
func (u *Unwinder) foldHook(row *cfi.Row, m *module.Module, a unwind.Address) {
	if row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != dwarfRSP ||
		!a.Exact && !u.mayBeHook(slotsOf(row), row.CFA.Off) { // an interrupted hook may not have pushed
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

// InReturnHook reports whether an address is in a return hook of an ELF image. It interprets unwind data, so
// it is too slow for every frame of a walk.
func (u *Unwinder) InReturnHook(a unwind.Address) bool {
	addr := a.Lookup()
	i := u.table.Find(addr)
	if i < 0 {
		return false
	}
	m := u.table.At(i)
	return m.CFI != nil && u.machine.Row(m.CFI, addr-m.Bias, &u.row) == cfi.None &&
		u.hookAt(m, u.row.FDE.Lo) != nil
}

// hookAt returns the return hook with the code at an ELF image's address lo.
func (u *Unwinder) hookAt(m *module.Module, lo uint64) *unwind.ReturnHook {
	if len(u.hooks) == 0 || !m.SystemV() {
		return nil
	}
	return u.hook(false, m.Bytes(lo+m.Bias, maxHookCode))
}

// unlisted repairs the step out of a return hook with unknown code, if SetReturnHooks has set one. It is
// called if a return address is outside all modules and managed ranges. The callee-saved registers are as in
// the return hook's rules.
func (u *Unwinder) unlisted(regs *Registers, mem *memory.Window, f *unwind.Frame) bool {
	if u.trust != unwind.TrustCFI || f.CFA != regs.GPR[context.RSP] {
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

// replacedReturn returns the true return address of the frame from sp to cfa, if the frame is a return hook
// with unknown code; otherwise 0. The address is in the frame, not below sp, where words are stale.
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

// hookPE returns the return hook whose function contains an RVA of a PE image.
func (u *Unwinder) hookPE(t *peamd64.Table, rva uint32) *unwind.ReturnHook {
	if len(u.hooks) == 0 {
		return nil
	}
	fn, ok := t.Lookup(rva)
	if !ok {
		return nil
	}
	return u.hook(true, t.Tail(fn.Begin, maxHookCode))
}

// leaveHook repairs regs, the result of a step by unwind data out of return hook l at the address from. It
// returns false if the true return address is not there yet or is not in managed code.
func (u *Unwinder) leaveHook(l *unwind.ReturnHook, from unwind.Address,
	regs *Registers, mem *memory.Window) bool {
	cfa := regs.GPR[context.RSP] + uint64(l.Off)
	ra, ok := mem.Word(cfa - 8)
	if from.Exact && l.Late || !ok || !u.table.IsManaged(unwind.ReturnAddress(ra).Lookup()) {
		return false
	}
	regs.RIP, regs.GPR[context.RSP] = ra, cfa
	return true
}

// HookReturn returns the caller's registers if s is a return hook of a PE image that has made a call. Their
// RIP is the word in the return address's place, which a walk refuses unless it is known managed code. The
// user may look it up in a newer module table, or predict what the runtime will write there.
func (u *Unwinder) HookReturn(s *unwind.State, mem *memory.Window) (to Registers, ok bool) {
	at := s.Address()
	i := u.table.Find(at.Lookup())
	if at.Exact || i < 0 || u.table.At(i).PE == nil {
		return to, false
	}
	m := u.table.At(i)
	t := m.PE.AMD64()
	l := u.hookPE(t, uint32(at.Lookup()-m.Bias))
	if l == nil || l.Interrupted {
		return to, false
	}
	to = s.Regs.AMD64
	if _, stop := StepPE(t, unwind.ReturnAddress(at.IP-m.Bias), &to, mem); stop != unwind.StopNone {
		return to, false
	}
	to.GPR[context.RSP] += uint64(l.Off)
	to.RIP, ok = mem.Word(to.GPR[context.RSP] - 8)
	return to, ok
}
