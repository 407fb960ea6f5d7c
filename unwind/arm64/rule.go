package arm64

import (
	"math"
	"math/bits"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
)

// Kind is the way in which a Rule steps.
type Kind uint8

const (
	RuleNone        Kind = iota // no rule: an empty cache entry
	RuleSlots                   // CFA = register + offset, registers in slots: call frame information
	RuleSlotsPE                 // the same from PE unwind data
	RuleCFI                     // the row does not fit; it is interpreted at each step
	RulePE                      // the unwind codes do not fit; they are executed at each step
	RuleLeafPE                  // a PE function without an entry, or after its epilog: pc = lr
	RuleEnd                     // the return address is undefined: end of stack
	RuleNoInfo                  // nothing covers the address
	RuleBad                     // its unwind data is malformed
	RuleUnsupported             // its unwind data is of an unsupported kind
)

var kindNames = [...]string{"none", "slots", "slots-pe", "cfi", "pe", "leaf-pe", "end",
	"no-info", "bad", "unsupported"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "rule?"
}

// Slots: x19-x30, then d8-d15.
const (
	firstX   = 19
	numX     = 12
	numSlots = numX + 8
	slotLR   = regLR - firstX
)

// Rule describes the step from one address. With its address it fills a cache line of 64 bytes.
type Rule struct {
	cfa    int32  // the CFA's distance from the base register, bytes
	saved  uint32 // bit i: slot i is saved; bits 20 and up: flags
	low    int16  // the lowest saved slot
	size   uint16 // words from there to the end of the highest
	module uint16 // index, noModule = none
	kind   Kind
	base   uint8           // register number, 31 = SP
	slots  [numSlots]int16 // words from the base register
}

const (
	slotsMask = 1<<numSlots - 1

	flagManaged = 1 << 31 // the address is managed code
	// of a PE function: the return address is signed (with call frame information, every return address is
	// stripped)
	flagStrip = 1 << 30
	flagExact = 1 << 29 // the caller's pc is exact (clear_unwound_to_call)
	flagShift = 1 << 28 // the caller's SP is 16 above the CFA: see quirks.go
	flagDoubt = 1 << 26 // the row contradicts itself or its code: see quirks.go
	flagFew   = 1 << 27 // it has started only few fused steps
	rareFlags = flagStrip | flagExact | flagShift

	noModule = 0xffff
)

func makeRule(k Kind, module int) Rule {
	if module < 0 || module >= noModule {
		module = noModule
	}
	return Rule{kind: k, module: uint16(module), base: regSP}
}

// Kind returns the way in which the rule steps.
func (r *Rule) Kind() Kind { return r.kind }

// Managed reports whether the address is managed code.
func (r *Rule) Managed() bool { return r.saved&flagManaged != 0 }

// outside reports whether the address is in no module and no managed range.
func (r *Rule) outside() bool { return r.module == noModule && r.saved&flagManaged == 0 }

// Module returns the index of the address's module, -1 if it is outside all.
func (r *Rule) Module() int {
	if r.module == noModule {
		return -1
	}
	return int(r.module)
}

// setSlot records that slot i is off bytes from the base register; false if that does not fit. Call measure
// after the last slot.
func (r *Rule) setSlot(i int, off int64) bool {
	if off&7 != 0 || off < math.MinInt16*8 || off >= math.MaxInt16*8 {
		return false
	}
	r.saved |= 1 << i
	r.slots[i] = int16(off >> 3)
	return true
}

// measure finds the range of words that contains all slots.
func (r *Rule) measure() {
	s := r.saved & slotsMask
	if s == 0 {
		return
	}
	low, high := int16(math.MaxInt16), int16(math.MinInt16)
	for ; s != 0; s &= s - 1 {
		at := r.slots[bits.TrailingZeros32(s)]
		low, high = min(low, at), max(high, at)
	}
	r.low, r.size = low, uint16(int(high)+1-int(low))
}

// pack turns a row into a rule, or returns false if it does not fit.
func pack(row *cfi.Row, module int) (Rule, bool) {
	r := makeRule(RuleSlots, module)
	off := row.CFA.Off
	if row.FDE.Signal || row.FDE.RA != cfi.ARM64LR || row.CFA.Kind != cfi.RegisterOffset ||
		row.CFA.Reg > regSP || off != int64(int32(off)) {
		return r, false
	}
	r.base, r.cfa = uint8(row.CFA.Reg), int32(off)
	for w, used := range row.Used {
		for ; used != 0; used &= used - 1 {
			c := w<<6 + bits.TrailingZeros64(used)
			if c >= cfi.Columns || !r.packColumn(c, &row.Regs[c]) {
				return r, false
			}
		}
	}
	r.measure()
	return r, true
}

// packColumn adds one register's rule.
func (r *Rule) packColumn(c int, rule *cfi.Rule) bool {
	slot := slotOf(cfi.RegisterOf(context.ArchARM64, c))
	switch {
	case rule.Kind == cfi.SameValue:
		return true
	case slot < 0:
		// The stack pointer's default may be written out. Volatile registers are not restored, so their
		// places do not matter.
		return c != regSP || rule.Kind == cfi.ValOffset && rule.Off == 0
	case rule.Kind != cfi.Offset:
		return false
	}
	return r.setSlot(slot, int64(r.cfa)+rule.Off)
}

// slotOf maps a DWARF register number to its slot, or -1.
func slotOf(reg uint16) int {
	switch {
	case reg >= firstX && reg <= regLR:
		return int(reg) - firstX
	case reg >= 72 && reg <= 79:
		return int(reg) - 72 + numX
	}
	return -1
}
