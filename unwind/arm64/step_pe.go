package arm64

import (
	"github.com/seedwalk/seedwalk/context/memory"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// codesAt returns the unwind codes to execute at a look-up address of a module, with RulePE; without codes,
// the kind is the reason.
func (u *Unwinder) codesAt(m *module.Module, addr uint64) ([]byte, Kind) {
	rva := addr - m.Bias
	if rva != uint64(uint32(rva)) {
		return nil, RuleNoInfo
	}
	var info pearm64.Info
	begin, found, fault := m.PE.ARM64().Find(uint32(rva), &u.packed, &info)
	if !fault.OK() {
		return nil, faultKind(fault.Reason)
	}
	if !found {
		return nil, RuleLeafPE
	}
	if omitsSigning(m, m.Bias+uint64(begin), &info) {
		return nil, RuleNoInfo
	}
	codes, _, fault := info.At(uint32(rva) - begin)
	if !fault.OK() {
		return nil, faultKind(fault.Reason)
	}
	return codes, RulePE
}

func faultKind(r pearm64.Reason) Kind {
	if r.Unsupported() {
		return RuleUnsupported
	}
	return RuleBad
}

// resolvePE finds a PE module's rule at an address. If the exception directory does not cover the address,
// it uses the image's DWARF sections, and then the rule for leaves, if the code proves one (else RuleNoInfo).
func (u *Unwinder) resolvePE(m *module.Module, i int, addr uint64) Rule {
	codes, kind := u.codesAt(m, addr)
	if kind == RuleLeafPE && m.CFI != nil {
		if r := u.resolveCFI(m, i, addr); r.Kind() != RuleNoInfo {
			return r
		}
	}
	if kind == RulePE && zeroes(m, addr) {
		return makeRule(RuleLeafPE, i)
	}
	if kind == RuleLeafPE && !u.provenLeaf(m, addr) { // also false at the address of a call's last byte
		kind = RuleNoInfo
	}
	if kind != RulePE {
		return makeRule(kind, i)
	}
	u.undo.compile()
	switch u.undo.codes(codes) {
	case undone:
		if r, ok := u.undo.pack(i); ok {
			return r
		}
		return makeRule(RulePE, i)
	case needsRun:
		return makeRule(RulePE, i)
	case unsupportedCodes:
		return makeRule(RuleUnsupported, i)
	}
	return makeRule(RuleBad, i)
}

// stepPE executes the codes, because a rule cannot hold their effect.
func (u *Unwinder) stepPE(r *Rule, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (bool, unwind.Stop) {
	i := r.Module()
	if i < 0 || i >= u.table.Len() {
		return false, unwind.NoInfo
	}
	codes, kind := u.codesAt(u.table.At(i), s.Address().Lookup())
	if kind != RulePE {
		return false, unwind.BadInfo
	}
	return u.runCodes(codes, s, mem, b, f)
}

// StepFunction undoes a frame of a function with known unwind information, at an instruction offset bytes
// into it; regs become the caller's. saved is the address from which the return address was read, 0 if it was
// in x30. inside means that the function was interrupted there; otherwise x30 is not its own.
func StepFunction(info *pearm64.Info, offset uint32, inside bool, regs *Registers,
	mem *memory.Window) (part pearm64.Where, saved uint64, stop unwind.Stop) {
	codes, part, fault := info.At(offset)
	if !fault.OK() {
		return part, 0, stopOf(fault.Reason)
	}
	var d undo
	d.execute(regs, mem)
	if o := d.codes(codes); o != undone {
		return part, 0, o.stop()
	}
	if d.have>>slotLR&1 != 0 {
		saved = d.address(d.at[slotLR])
	}
	switch o := d.commit(); {
	case o != undone:
		return part, 0, o.stop()
	case d.pcSet || d.exact:
		return part, 0, unwind.Unsupported // a machine frame in managed code
	case !d.lr && (!inside || !known(regs, regLR)):
		return part, 0, unwind.BadInfo // lr cannot be live: see returnAddress
	}
	*regs = d.regs
	regs.PC = stripPAC(regs.X[regLR])
	regs.Known &= nonvolatile | 1<<regLR
	return part, saved, unwind.StopNone
}

func stopOf(r pearm64.Reason) unwind.Stop {
	if r.Unsupported() {
		return unwind.Unsupported
	}
	return unwind.BadInfo
}

// Preserved are the registers that a function preserves, as bits of Known: the same on every system.
const Preserved = nonvolatile

func (u *Unwinder) runCodes(codes []byte, s *unwind.State, mem *memory.Window, b *unwind.Bounds,
	f *unwind.Frame) (exact bool, stop unwind.Stop) {
	d, regs := &u.undo, &s.Regs.ARM64
	d.execute(regs, mem)
	if o := d.codes(codes); o != undone {
		return false, o.stop()
	}
	if !s.Exact && !d.exact && !d.lr {
		return false, unwind.BadInfo // lr cannot be live: see returnAddress
	}
	if o := d.commit(); o != undone {
		return false, o.stop()
	}
	if !d.pcSet {
		d.regs.PC = d.regs.X[regLR]
		d.regs.Known &= nonvolatile
		if stop := checkSP(regs.Sp, d.regs.Sp, b); stop != unwind.StopNone {
			return false, stop
		}
	}
	if stop := checkRA(regs, d.regs.Sp, d.regs.PC); stop != unwind.StopNone {
		return false, stop
	}
	*regs = d.regs
	f.CFA = regs.Sp
	return d.exact, unwind.StopNone
}
