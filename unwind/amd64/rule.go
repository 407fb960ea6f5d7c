package amd64

import (
	"math/bits"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind"
)

// Registers is the state of a frame, in UNWIND_INFO numbering.
type Registers = context.AMD64

// nonvolatile are the general registers that a System V function preserves (psABI figure 3.4), including RSP,
// which is known in every frame.
const nonvolatile = 1<<context.RBX | 1<<context.RBP | 1<<context.RSP |
	1<<context.R12 | 1<<context.R13 | 1<<context.R14 | 1<<context.R15

// fromDWARF maps DWARF register numbers 0-15 (psABI figure 3.36) to UNWIND_INFO numbers.
var fromDWARF = [16]uint8{
	context.RAX, context.RDX, context.RCX, context.RBX,
	context.RSI, context.RDI, context.RBP, context.RSP,
	context.R8, context.R9, context.R10, context.R11,
	context.R12, context.R13, context.R14, context.R15,
}

// DWARF numbers that this package uses.
const (
	dwarfRBX = 3
	dwarfRBP = 6
	dwarfRSP = 7
	dwarfR12 = 12
	dwarfRA  = 16
)

func known(regs *Registers, reg int) bool { return regs.Known>>reg&1 != 0 }

// Kind is the way in which a Rule steps.
type Kind uint8

const (
	RuleNone       Kind = iota // no rule: an empty cache entry
	RuleSP                     // CFA = RSP + offset, return address at CFA-8, registers in slots
	RuleBP                     // the same from RBP
	RuleSide                   // see the unwinder's side rules
	RuleEnd                    // the return address is undefined: end of stack
	RuleNoInfo                 // nothing covers the address
	RuleBad                    // its unwind data is malformed
	RuleNear                   // of a PE function: CFA = RSP + offset, registers in slots near it
	RuleSlotsPE                // see the unwinder's PE rules
	RulePE                     // the module's PE unwind data decides, at each step
	RuleThunk                  // the rule of the thunk's jump target
	RuleNearBP                 // RuleNear with a CFA relative to RBP
	RuleNearEpilog             // RuleNear in an epilog; fused steps do not start there
	RuleNearLeaf               // RuleNear in a leaf; fused steps do not start there
)

// Rule is how to step from one address, packed into a word so that a cache entry is 16 bytes.
//
//	bits  0-3   Kind
//	bit   4     the address is managed code
//	bits  5-20  CFA offset in words, or the index of the side or PE rule
//	bits 21-44  slots of RBX RBP R12 R13 R14 R15, four bits each:
//	            saved at CFA - 8*slot, 0 = the register is unchanged
//	bits 45-60  module index, 0xffff = none
//
// Those of a PE function differ (RuleSlotsPE only in bit 63, the kinds RuleNear... in all):
//
//	bits  5-12  CFA offset in words
//	bits 13-44  slots of RSI and RDI, and those above, four bits each: at CFA + 32 - 8*slot
//	bit  63     made for an interrupted ip
//
// In a RuleThunk, bits 21-24 are the register through which the thunk jumps. The offset is that of the CFA at
// the thunk's call. A RuleNoInfo and a RuleSide also record the result of reading the code at the address.
// Bits 5-20 of a RuleNoInfo are then a codeClass. Both kinds have two more bits:
//
//	bit  62     the code was read
//	bit  63     for an interrupted ip
//
// Bit 21 of a RuleNoInfo in no module marks foreign JIT code. A rule with which fused steps may start has
//
//	bit  61     the last run of fused steps from here was short
type Rule struct{ bits uint64 }

const (
	managedBit  = 1 << 4
	offsetShift = 5
	maxOffset   = 1<<16 - 1 // in words
	slotShift   = 21
	jitBit      = 1 << slotShift // for a rule without a module, which has no slots
	exactBit    = 1 << 63
	seenBit     = 1 << 62
	fewBit      = 1 << 61
	nearShift   = 13
	maxNear     = 1<<8 - 1 // words
	slotMask    = 1<<24 - 1
	maxSlot     = 15
	moduleShift = 45
	noModule    = 0xffff
)

// form describes how cached rules are encoded. CFI has one form, and PE functions have another.
type form struct {
	sp, bp  uint64       // Kinds of rules relative to RSP, and to RBP
	trust   unwind.Trust // how the rules find callers
	kept    uint32       // the registers that functions preserve
	offsets uint64       // mask of the CFA offset, in words
	slots   uint64       // mask of the slots
	above   uint64       // the distance from the CFA to the end of the slots' block, bytes
}

// forms are the forms of the kinds of rules that have one; those of other kinds have no slots.
var forms = [16]form{RuleSP: cfiForm, RuleBP: cfiForm, RuleNear: peForm, RuleNearBP: peForm,
	RuleNearEpilog: nearForm(RuleNearEpilog, unwind.TrustEpilog),
	RuleNearLeaf:   nearForm(RuleNearLeaf, unwind.TrustLeaf)}

var (
	cfiForm = form{uint64(RuleSP), uint64(RuleBP), unwind.TrustCFI, nonvolatile, maxOffset,
		slotMask << slotShift, 0}
	peForm = nearForm(RuleNear, unwind.TrustUnwindInfo)
)

// nearForm is the form of the rules of kind k that find callers with trust t.
func nearForm(k Kind, t unwind.Trust) form {
	return form{uint64(k), uint64(RuleNearBP), t, windowsKept, maxNear, (1<<32 - 1) << nearShift, nearAbove}
}

func makeRule(k Kind, module int) Rule {
	if module < 0 || module >= noModule {
		module = noModule
	}
	return Rule{uint64(k) | uint64(module)<<moduleShift}
}

// Kind returns the way in which the rule steps.
func (r Rule) Kind() Kind { return Kind(r.bits & 15) }

// Managed reports whether the address is managed code.
func (r Rule) Managed() bool { return r.bits&managedBit != 0 }

// Module returns the index of the address's module, -1 if it is outside all.
func (r Rule) Module() int {
	if m := int(r.bits >> moduleShift & 0xffff); m != noModule {
		return m
	}
	return -1
}

// offset returns the CFA's distance from its register in bytes.
func (r Rule) offset() uint64 { return r.bits >> offsetShift & maxOffset << 3 }

// exactPE reports whether a PE function's rule is for an interrupted ip and not for the return address after
// the look-up address.
func (r Rule) exactPE() bool { return r.bits&exactBit != 0 }

// looked reports whether the code at the address was already classified for an equally exact ip.
func (r Rule) looked(exact bool) bool { return r.bits&seenBit != 0 && r.exactPE() == exact }

// index returns the side or PE rule's number.
func (r Rule) index() int { return int(r.bits >> offsetShift & maxOffset) }

func (r Rule) withIndex(i int) Rule { return Rule{r.bits | uint64(i)<<offsetShift} }

// slots returns the six slots, the first in the lowest four bits.
func (r Rule) slots() uint64 { return r.bits >> slotShift & slotMask }

// outside reports whether the address is outside all modules, managed ranges, and foreign JIT ranges.
func (r Rule) outside() bool {
	return r.bits&(managedBit|jitBit) == 0 && r.bits>>moduleShift&0xffff == noModule
}

// pack turns a row into a rule's bits, or returns false if it does not fit.
func pack(row *cfi.Row, module int) (Rule, bool) {
	if row.FDE.Signal || row.FDE.RA != dwarfRA {
		return Rule{}, false
	}
	if ra := &row.Regs[dwarfRA]; ra.Kind != cfi.Offset || ra.Off != -8 {
		return Rule{}, false
	}
	r, ok := packCFA(&row.CFA, module)
	if !ok {
		return r, false
	}
	slots := r.bits
	for used := row.Used[0] &^ (1 << dwarfRA) & (1<<16 - 1); used != 0; used &= used - 1 {
		reg := bits.TrailingZeros64(used) & 15
		rule := &row.Regs[reg]
		slot := uint64(-rule.Off)
		// nearly all
		if at := slotOf[reg]; at >= 0 && rule.Kind == cfi.Offset && slot-8 < 8*maxSlot && slot&7 == 0 {
			slots |= slot << (uint(at+slotShift-3) & 63)
		} else if !unchanged(reg, rule) {
			return r, false
		}
	}
	return Rule{slots}, true
}

func packCFA(rule *cfi.Rule, module int) (Rule, bool) {
	off := uint64(rule.Off)
	if rule.Kind != cfi.RegisterOffset || off&7 != 0 || off>>3 > maxOffset {
		return Rule{}, false
	}
	k := RuleSP
	switch rule.Reg {
	case dwarfRSP:
	case dwarfRBP:
		k = RuleBP
	default:
		return Rule{}, false
	}
	r := makeRule(k, module)
	r.bits |= off >> 3 << offsetShift
	return r, module < noModule
}

// unchanged reports whether a register's rule, which does not fit in a slot, means the default: no change.
// The stack pointer's default may be written out. Rules for volatile registers are rare; a row with one
// becomes a side rule.
func unchanged(reg int, rule *cfi.Rule) bool {
	if slotOf[reg&15] < 0 {
		return reg == dwarfRSP && rule.Kind == cfi.ValOffset && rule.Off == 0
	}
	return rule.Kind == cfi.SameValue
}

// slotOf maps a DWARF register number to the bit position of its slot in a rule's slots, -1 for registers
// without one.
var slotOf = [16]int8{-1, -1, -1, 0, -1, -1, 4, -1, -1, -1, -1, -1, 8, 12, 16, 20}
