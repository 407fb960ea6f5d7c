package amd64

import (
	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// stepPE steps out of a function of a PE module. If the module's exception directory does not cover the
// address, stepPE uses the module's DWARF sections. If those do not cover it either, it tries an aligning
// call (see aligning), and last the leaf rule, if the code agrees with it.
func (u *Unwinder) stepPE(m *module.Module, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (exact bool, stop unwind.Stop) {
	at := unwind.Address{IP: s.Regs.AMD64.RIP, Exact: s.Exact}
	rva := unwind.Address{IP: at.IP - m.Bias, Exact: at.Exact}
	if rva.IP != uint64(uint32(rva.IP)) {
		return false, unwind.NoInfo
	}
	t := m.PE.AMD64()
	if entry, ok := t.Lookup(uint32(rva.Lookup())); ok {
		return u.stepCovered(m, entry, uint32(rva.IP), s, mem, b, f)
	}
	// The leaf rule by unwind data is not tried first: that would copy all registers for nothing.
	if r, ok := u.peCFI(m, int(f.Module), at.Lookup()); ok {
		return u.stepPECFI(r, s, mem, b, f)
	}
	if !at.Exact {
		if entry, to, ok := aligning(t, uint32(rva.IP)); ok {
			return u.stepCovered(m, entry, to, s, mem, b, f)
		}
	}
	if at.Exact && t.Len() != 0 && straightLeaf(t.Tail(uint32(rva.IP), maxStraight)) {
		r := makeRule(RuleNearLeaf, int(f.Module)).withIndex(1) // the CFA is a word above RSP
		r.bits |= exactBit
		if fm := &forms[RuleNearLeaf]; stepHot(r, fm, &s.Regs.AMD64, true, mem, b, f) {
			u.trust = fm.trust
			return false, unwind.StopNone
		}
	}
	return u.stepSilent(m, s, mem, b, f)
}

// stepCovered steps out of code with an entry in the exception directory. pc is the RVA of the instruction.
// For a frame after an aligning call, entry and pc are those of the call's target (see aligning).
func (u *Unwinder) stepCovered(m *module.Module, entry peamd64.RuntimeFunction, pc uint32, s *unwind.State,
	mem *memory.Window, b *unwind.Bounds, f *unwind.Frame) (exact bool, stop unwind.Stop) {
	at, regs, t := unwind.Address{IP: s.Regs.AMD64.RIP, Exact: s.Exact}, &s.Regs.AMD64, m.PE.AMD64()
	to := *regs
	step := peStep{table: t, pc: pc, regs: &to, mem: mem}
	if stop := step.covered(entry, at.Exact); stop != unwind.StopNone {
		return false, stop
	}
	res, interrupted := &step.res, false
	if res.Part == PECode && len(u.hooks) != 0 {
		if l := u.hook(true, t.Tail(entry.Begin, maxHookCode)); l != nil {
			if interrupted = l.Interrupted; !interrupted && !u.leaveHook(l, at, &to, mem) {
				return false, unwind.NoInfo
			}
		}
	}
	if stop := u.accept(&to, res.Machine, regs, b, f); stop != unwind.StopNone {
		return false, stop
	}
	u.trust = peTrust[res.Part]
	return res.Machine || interrupted, unwind.StopNone
}

// stepSilent steps out of code that a PE image does not describe, by the leaf rule if the code agrees. In
// an image without any exception directory, its code is followed as in any image.
func (u *Unwinder) stepSilent(m *module.Module, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (bool, unwind.Stop) {
	regs, t := &s.Regs.AMD64, m.PE.AMD64()
	to, proven, ok := Registers{}, false, false
	if _, there := mem.Word(regs.GPR[context.RSP]); s.Exact && !there {
		return false, unwind.Unreadable
	}
	if t.Len() == 0 { // the exception directory was removed
		return u.fallback(makeRule(RuleNoInfo, int(f.Module)), s, mem, b, f)
	}
	if to, proven, ok = u.silent(m, s, mem); !ok {
		return u.fallback(makeRule(RuleNoInfo, -1), s, mem, b, f)
	}
	stop := u.accept(&to, false, regs, b, f)
	if stop == unwind.StopNone {
		f.Exact = f.Exact || proven
		if !proven {
			u.trust = unwind.TrustCode
		}
	}
	return false, stop
}

var peTrust = [...]unwind.Trust{PECode: unwind.TrustUnwindInfo,
	PEEpilog: unwind.TrustEpilog, PELeaf: unwind.TrustLeaf}

// peCFI returns the rule of a PE module's call frame information at an address. Its addresses are those of an
// image at ImageBase.
func (u *Unwinder) peCFI(m *module.Module, i int, addr uint64) (Rule, bool) {
	if m.CFI == nil {
		return Rule{}, false
	}
	bias := m.CFIBias()
	if why := u.machine.Row(m.CFI, addr-bias, &u.row); why != cfi.None {
		return withoutRow(why, i), why != cfi.NoInfo
	}
	return u.compile(&u.row, i, addr-bias, bias), true
}

// stepPECFI executes a rule of peCFI, whose row is still in u.row. Rules assume System V: the registers that
// only Windows functions preserve are the caller's, unless the row lists them.
func (u *Unwinder) stepPECFI(r Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (exact bool, stop unwind.Stop) {
	regs := &s.Regs.AMD64
	had := regs.Known
	if exact, stop = u.leaveFrame(r, s, mem, b, f); stop != unwind.StopNone {
		return exact, stop
	}
	for d := dwarfRSI; d <= dwarfRDI; d++ {
		if reg := fromDWARF[d]; u.row.Regs[d].Kind == cfi.Unspecified {
			regs.Known |= had & (1 << reg)
		}
	}
	for i := range regs.XMM {
		if u.row.Regs[dwarfXMM6+i].Kind == cfi.Unspecified {
			regs.Known |= had & (1 << (16 + i))
		}
	}
	return exact, stop
}

// DWARF numbers of registers that only Windows functions preserve.
const (
	dwarfRSI  = 4
	dwarfRDI  = 5
	dwarfXMM6 = 17 + 6
)
