package context

// UNWIND_INFO register numbers, which are also x86-64 instruction encodings.
// Source: Microsoft, "x64 exception handling", struct UNWIND_CODE.
const (
	RAX = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
)

// XMM is one 128-bit register, low quadword first.
type XMM [2]uint64

// AMD64 is the register state of an x86-64 thread: instruction pointer, the
// sixteen general registers in UNWIND_INFO numbering, and XMM6-XMM15, which
// are nonvolatile on Windows. Set Known to AMD64All if you fill in the registers yourself.
type AMD64 struct {
	RIP   uint64
	GPR   [16]uint64
	XMM   [10]XMM // XMM[i] is XMM6+i
	Known uint32  // bit i: GPR i is known; bit 16+i: XMM6+i is known
}

// AMD64All is Known with every register known.
const AMD64All = 1<<26 - 1

// SP returns RSP.
func (r *AMD64) SP() uint64 { return r.GPR[RSP] }

// FP returns RBP.
func (r *AMD64) FP() uint64 { return r.GPR[RBP] }
