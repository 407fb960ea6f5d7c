package target

import "github.com/seedwalk/seedwalk/context"

// Registers of a record, in the probe's order.

// recorded are the numbers in context.AMD64 of the first sixteen; the last is rip.
var recorded = [...]int{context.R8, context.R9, context.R10, context.R11, context.R12,
	context.R13, context.R14, context.R15,
	context.RDI, context.RSI, context.RBP, context.RBX, context.RDX, context.RAX, context.RCX, context.RSP}

// Registers returns a record's registers of an interrupted thread.
func Registers(a context.Arch, r []uint64) context.Registers {
	if a == context.ArchARM64 {
		return context.FromARM64(registersARM64(r))
	}
	var g context.AMD64
	for i, reg := range recorded {
		g.GPR[reg] = r[i]
		g.Known |= 1 << reg
	}
	g.RIP = r[16]
	return context.FromAMD64(g)
}

func registersARM64(r []uint64) (g context.ARM64) {
	copy(g.X[:], r)
	g.Sp, g.PC = r[31], r[32]
	copy(g.D[:], r[33:])
	g.Known = 1<<31 - 1 | 0xff<<32
	return g
}

// The registers that a call preserves, as bits of Known: by the System V ABI, the x64 calling convention of
// Windows, and AAPCS64. Walks need no vector registers of x86-64.
const (
	keptSystemV = 1<<context.RBX | 1<<context.RBP | 1<<context.RSP | 1<<context.R12 | 1<<context.R13 |
		1<<context.R14 | 1<<context.R15
	keptWindows = keptSystemV | 1<<context.RSI | 1<<context.RDI
	keptARM64   = 0xff<<32 | 0x7ff<<19
)

// Called returns a record's registers of a thread that has called the probe on a system that Go calls system.
func Called(a context.Arch, r []uint64, system string) context.Registers {
	g := Registers(a, r)
	if g.ARM64.Known &= keptARM64; system == "windows" {
		g.AMD64.Known &= keptWindows
	} else {
		g.AMD64.Known &= keptSystemV
	}
	return g
}
