package context

// ARM64 is the register state of an AArch64 thread: X0-X30, SP, PC and the
// nonvolatile low halves D8-D15 of the vector registers. Set Known to ARM64All
// if you fill in the registers yourself.
type ARM64 struct {
	X     [31]uint64 // X[29] is the frame pointer, X[30] the link register
	Sp    uint64
	PC    uint64
	D     [8]uint64 // D[i] is d8+i
	Known uint64    // bit i: X[i] is known; bit 32+i: d8+i is known
}

// ARM64All is Known with every register known.
const ARM64All = 1<<31 - 1 | 0xff<<32

// SP returns SP.
func (r *ARM64) SP() uint64 { return r.Sp }

// FP returns X29.
func (r *ARM64) FP() uint64 { return r.X[29] }
