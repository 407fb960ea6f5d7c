package amd64

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// Functions with large frames touch each page of them (-fstack-clash-protection): a loop lowers the stack
// pointer until a comparison ends it. The stack pointer after the loop is known only by executing it, so a
// known comparison of the stack pointer decides the branch after it.

// comparison is the last instruction's comparison.
type comparison struct {
	left, right uint64
	ok          bool
}

// compare records a comparison of the stack pointer with another register.
func (e *emulator) compare(in *x86.Insn) {
	left, right := in.RM, in.Reg
	if in.Op == 0x3b {
		left, right = right, left
	}
	a, b := e.get(left), e.get(right)
	if (left == context.RSP || right == context.RSP) && a.kind == knownValue && b.kind == knownValue {
		e.cmp = comparison{a.v, b.v, true}
	}
}

// decides returns whether a conditional jump directly after the comparison is taken.
func (c *comparison) decides(in *x86.Insn) (taken, ok bool) {
	condition := in.Op & 0xf
	if !c.ok || in.Table == 0 && in.Op&0xf0 != 0x70 {
		return false, false
	}
	switch condition &^ 1 {
	case 0x2: // below
		taken = c.left < c.right
	case 0x4: // equal
		taken = c.left == c.right
	case 0x6: // below or equal
		taken = c.left <= c.right
	case 0xc: // less
		taken = int64(c.left) < int64(c.right)
	case 0xe: // less or equal
		taken = int64(c.left) <= int64(c.right)
	default:
		return false, false
	}
	return taken != (condition&1 != 0), true
}
