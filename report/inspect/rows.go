package inspect

import (
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/buf"
)

var amd64DWARF = [17]string{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11",
	"r12", "r13", "r14", "r15", "ra"}

// RegName names a DWARF register number: rbx, x19, d8 (AArch64 v8's low half
// is what an unwinder restores).
func RegName(a context.Arch, reg uint16) string {
	switch {
	case a == context.ArchAMD64 && reg <= 16:
		return amd64DWARF[reg]
	case a == context.ArchAMD64 && reg <= 32:
		return fmt.Sprintf("xmm%d", reg-17)
	case a == context.ArchARM64 && reg == cfi.ARM64SP:
		return "sp"
	case a == context.ArchARM64 && reg <= 30:
		return fmt.Sprintf("x%d", reg)
	case a == context.ArchARM64 && reg >= 64 && reg <= 95:
		return fmt.Sprintf("d%d", reg-64)
	}
	return fmt.Sprintf("r%d", reg)
}

// RuleText writes a rule: [cfa-16], rsp+8, =x15, same, undefined, [expr ...].
func RuleText(a context.Arch, r *cfi.Rule) string {
	switch r.Kind {
	case cfi.Undefined:
		return "undefined"
	case cfi.SameValue:
		return "same"
	case cfi.Offset:
		return fmt.Sprintf("[cfa%+d]", r.Off)
	case cfi.ValOffset:
		return fmt.Sprintf("cfa%+d", r.Off)
	case cfi.Register:
		return "=" + RegName(a, r.Reg)
	case cfi.RegisterOffset:
		return fmt.Sprintf("%s%+d", RegName(a, r.Reg), r.Off)
	case cfi.Expression:
		return "[" + ExprText(a, r.Expr) + "]"
	case cfi.ValExpression:
		return ExprText(a, r.Expr)
	}
	return "unspecified"
}

// RowText writes the CFA rule and the rules of all registers a row names.
func RowText(a context.Arch, row *cfi.Row) (cfa, saved string) {
	cfa = RuleText(a, &row.CFA)
	if row.CFA.Kind == cfi.Expression {
		cfa = ExprText(a, row.CFA.Expr)
	}
	var parts []string
	for c := range row.Regs {
		if r := &row.Regs[c]; r.Kind != cfi.Unspecified {
			parts = append(parts, RegName(a, cfi.RegisterOf(a, c))+" "+RuleText(a, r))
		}
	}
	if row.RASign {
		parts = append(parts, "ra signed")
	}
	return cfa, strings.Join(parts, ", ")
}

// operand kinds of DWARF operations.
type operand uint8

const (
	noOperand operand = iota
	u8
	s8
	u16
	s16
	u32
	s32
	u64
	uleb
	sleb
	ulebSLEB
)

type operation struct {
	name string
	arg  operand
}

var operations = map[uint8]operation{
	0x03: {"addr", u64}, 0x06: {"deref", 0}, 0x08: {"const1u", u8}, 0x09: {"const1s", s8},
	0x0a: {"const2u", u16}, 0x0b: {"const2s", s16},
	0x0c: {"const4u", u32}, 0x0d: {"const4s", s32}, 0x0e: {"const8u", u64}, 0x0f: {"const8s", u64},
	0x10: {"constu", uleb}, 0x11: {"consts", sleb},
	0x12: {"dup", 0}, 0x13: {"drop", 0}, 0x14: {"over", 0}, 0x15: {"pick", u8}, 0x16: {"swap", 0},
	0x17: {"rot", 0}, 0x19: {"abs", 0}, 0x1a: {"and", 0},
	0x1b: {"div", 0}, 0x1c: {"minus", 0}, 0x1d: {"mod", 0}, 0x1e: {"mul", 0}, 0x1f: {"neg", 0},
	0x20: {"not", 0}, 0x21: {"or", 0}, 0x22: {"plus", 0},
	0x23: {"plus_uconst", uleb}, 0x24: {"shl", 0}, 0x25: {"shr", 0}, 0x26: {"shra", 0}, 0x27: {"xor", 0},
	0x28: {"bra", s16}, 0x29: {"eq", 0},
	0x2a: {"ge", 0}, 0x2b: {"gt", 0}, 0x2c: {"le", 0}, 0x2d: {"lt", 0}, 0x2e: {"ne", 0},
	0x2f: {"skip", s16}, 0x92: {"bregx", ulebSLEB},
	0x94: {"deref_size", u8}, 0x96: {"nop", 0},
}

// ExprText writes a DWARF expression as its operations. Bytes that are no
// operation end it.
func ExprText(a context.Arch, e []byte) string {
	var out []string
	for r := buf.At(e, 0); r.Len() > 0 && r.OK(); {
		op := r.U8()
		switch {
		case op >= 0x30 && op <= 0x4f:
			out = append(out, fmt.Sprintf("lit%d", op-0x30))
			continue
		case op >= 0x70 && op <= 0x8f:
			out = append(out, fmt.Sprintf("%s%+d", RegName(a, uint16(op-0x70)), r.SLEB()))
			continue
		}
		o, ok := operations[op]
		if !ok {
			out = append(out, fmt.Sprintf("op?%#x", op))
			break
		}
		out = append(out, o.name+o.arg.text(&r))
	}
	return strings.Join(out, " ")
}

func (o operand) text(r *buf.Reader) string {
	switch o {
	case u8:
		return fmt.Sprintf(" %d", r.U8())
	case s8:
		return fmt.Sprintf(" %d", int8(r.U8()))
	case u16:
		return fmt.Sprintf(" %d", r.U16())
	case s16:
		return fmt.Sprintf(" %d", int16(r.U16()))
	case u32:
		return fmt.Sprintf(" %d", r.U32())
	case s32:
		return fmt.Sprintf(" %d", int32(r.U32()))
	case u64:
		return fmt.Sprintf(" %#x", r.U64())
	case uleb:
		return fmt.Sprintf(" %d", r.ULEB())
	case sleb:
		return fmt.Sprintf(" %d", r.SLEB())
	case ulebSLEB:
		n := r.ULEB()
		return fmt.Sprintf(" r%d%+d", n, r.SLEB())
	}
	return ""
}

// wellFormed looks at every operation of an expression without running it.
func wellFormed(e []byte) cfi.Reason {
	for r := buf.At(e, 0); r.Len() > 0; {
		op := r.U8()
		if op >= 0x30 && op <= 0x4f {
			continue
		}
		if op >= 0x70 && op <= 0x8f {
			r.SLEB()
		} else if o, ok := operations[op]; ok {
			o.arg.text(&r)
		} else {
			return cfi.BadExpression
		}
		if !r.OK() {
			return cfi.Truncated
		}
	}
	return cfi.None
}
