package cfi

import (
	"math/bits"

	"github.com/seedwalk/seedwalk/context"
)

// Kind is the way in which a Rule finds a value.
type Kind uint8

const (
	Unspecified    Kind = iota // no instruction names the register: the psABI decides
	Undefined                  // the value is lost; for the return address: end of stack
	SameValue                  // unchanged
	Offset                     // saved at CFA+Off
	ValOffset                  // the value is CFA+Off
	Register                   // in register Reg
	Expression                 // saved at the address Expr computes; as the CFA rule: Expr computes the CFA
	ValExpression              // Expr computes the value
	RegisterOffset             // CFA only: Reg+Off
)

var kindNames = [...]string{"unspecified", "undefined", "same-value", "offset", "val-offset", "register",
	"expression", "val-expression", "register-offset"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind?"
}

// Rule locates the caller's value of one register, or the CFA.
type Rule struct {
	Kind Kind
	Reg  uint16 // DWARF number
	Off  int64  // bytes, already multiplied by the data alignment factor
	Expr []byte // a part of the section's own bytes
}

// FDE is one frame description entry.
type FDE struct {
	Lo, Hi     uint64 // [Lo, Hi) in the image's own virtual addresses
	RA         uint16 // DWARF number of the return address register
	Signal     bool   // 'S': a signal trampoline; the frame below is exact
	BKey       bool   // 'B': return addresses are signed with the B key
	DebugFrame bool   // from .debug_frame, else from .eh_frame
	Offset     uint64 // of the record in its section
}

// Row holds the rules at one pc. Machine.Row fills it; it may be reused without clearing.
type Row struct {
	FDE    FDE
	Lo, Hi uint64 // the rules hold for every pc in [Lo, Hi)
	CFA    Rule   // RegisterOffset; or Expression, and then Reg and Off are the previous values
	Regs   [Columns]Rule
	Used   [2]uint64 // bit i of the 128: Regs[i] is not Unspecified
	RASign bool      // the saved return address carries a pointer authentication code
	BKey   bool      // it is signed with the B key
}

// Rule returns the rule of a DWARF register number: Unspecified for registers without a column.
func (r *Row) Rule(a context.Arch, reg uint16) Rule {
	if c := Column(a, uint64(reg)); c >= 0 {
		return r.Regs[c]
	}
	return Rule{}
}

// byGo reports whether Go's linker wrote c, judged by its data alignment factor
// (cmd/link/internal/ld/dwarf.go, dataAlignmentFactor). No other producer for x86-64 uses this factor, but
// clang does for ARM64. Go's functions preserve no register, and its unwind data do not describe the frame
// pointer that some of them save.
func (c *cie) byGo(arch context.Arch) bool { return arch == context.ArchAMD64 && c.dataAlign == -4 }

// loseRegisters makes the registers that C functions preserve undefined, unless they have a rule.
func (r *Row) loseRegisters(arch context.Arch) {
	for c := range Columns {
		if r.Regs[c].Kind == Unspecified && CalleeSaved(arch, uint16(c)) {
			r.Set(c, Rule{Kind: Undefined})
		}
	}
}

// assign sets r to from. Few rules have an expression, and not writing the slice avoids the collector's write
// barrier.
func (r *Rule) assign(from *Rule) {
	r.Kind, r.Reg, r.Off = from.Kind, from.Reg, from.Off
	if r.Expr != nil || from.Expr != nil {
		r.Expr = from.Expr
	}
}

// offset sets r to a distance alone.
func (r *Rule) offset(kind Kind, off int64) {
	r.Kind, r.Reg, r.Off = kind, 0, off
	if r.Expr != nil {
		r.Expr = nil
	}
}

// Set sets the rule of a column.
func (r *Row) Set(c int, rule Rule) { *r.use(c) = rule }

func (r *Row) use(c int) *Rule {
	r.Used[c>>6] |= 1 << (c & 63)
	return &r.Regs[c]
}

func (r *Row) clear(c int) {
	r.Regs[c].offset(Unspecified, 0)
	r.Used[c>>6] &^= 1 << (c & 63)
}

// reset clears only the rules in use: a Row is large and few are.
func (r *Row) reset() {
	r.clearRegs()
	r.CFA.offset(Unspecified, 0)
	r.FDE = FDE{}
	r.Lo, r.Hi = 0, 0
	r.RASign, r.BKey = false, false
}

func (r *Row) clearRegs() {
	for m := r.Used[0]; m != 0; m &= m - 1 {
		r.Regs[bits.TrailingZeros64(m)&63].offset(Unspecified, 0)
	}
	for m := r.Used[1]; m != 0; m &= m - 1 {
		if c := 64 + bits.TrailingZeros64(m); c < Columns {
			r.Regs[c].offset(Unspecified, 0)
		}
	}
	r.Used = [2]uint64{}
}
