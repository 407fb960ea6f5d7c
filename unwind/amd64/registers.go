package amd64

import "github.com/seedwalk/seedwalk/context"

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
