package context

// Registers is the register state of a thread of either architecture. Only the member that Arch selects is
// valid; with NoArch nothing is known.
//
// Generic code holds a *Registers and uses its methods; walkers take their architecture's member once per
// block and use it directly.
type Registers struct {
	Arch  Arch
	AMD64 AMD64
	ARM64 ARM64
}

// FromAMD64 returns r as Registers.
func FromAMD64(r AMD64) Registers { return Registers{Arch: ArchAMD64, AMD64: r} }

// FromARM64 returns r as Registers.
func FromARM64(r ARM64) Registers { return Registers{Arch: ArchARM64, ARM64: r} }

// IP returns the instruction pointer, 0 for NoArch.
func (r *Registers) IP() uint64 {
	switch r.Arch {
	case ArchAMD64:
		return r.AMD64.RIP
	case ArchARM64:
		return r.ARM64.PC
	}
	return 0
}

// SP returns the stack pointer, 0 for NoArch.
func (r *Registers) SP() uint64 {
	switch r.Arch {
	case ArchAMD64:
		return r.AMD64.SP()
	case ArchARM64:
		return r.ARM64.Sp
	}
	return 0
}

// FP returns the frame pointer register (RBP, x29), whether or not it is known; 0 for NoArch.
func (r *Registers) FP() uint64 {
	switch r.Arch {
	case ArchAMD64:
		return r.AMD64.FP()
	case ArchARM64:
		return r.ARM64.FP()
	}
	return 0
}

// SetIP sets the instruction pointer.
func (r *Registers) SetIP(ip uint64) {
	switch r.Arch {
	case ArchAMD64:
		r.AMD64.RIP = ip
	case ArchARM64:
		r.ARM64.PC = ip
	}
}

// SetSP sets the stack pointer.
func (r *Registers) SetSP(sp uint64) {
	switch r.Arch {
	case ArchAMD64:
		r.AMD64.GPR[RSP] = sp
	case ArchARM64:
		r.ARM64.Sp = sp
	}
}

// SetFP sets the frame pointer register; it does not mark it as known.
func (r *Registers) SetFP(fp uint64) {
	switch r.Arch {
	case ArchAMD64:
		r.AMD64.GPR[RBP] = fp
	case ArchARM64:
		r.ARM64.X[29] = fp
	}
}

// ReturnTo sets the instruction pointer as a return to ra does: on ARM64 the link register too.
func (r *Registers) ReturnTo(ra uint64) {
	r.SetIP(ra)
	if r.Arch == ArchARM64 {
		r.ARM64.X[30] = ra
	}
}

// Copy sets r's registers from another value. It leaves the other architecture's member unchanged.
func (r *Registers) Copy(from *Registers) {
	switch r.Arch = from.Arch; from.Arch {
	case ArchAMD64:
		r.AMD64 = from.AMD64
	case ArchARM64:
		r.ARM64 = from.ARM64
	}
}

// Equal reports whether r and other have the same values, also in unknown registers.
func (r *Registers) Equal(other *Registers) bool {
	switch {
	case r.Arch != other.Arch:
		return false
	case r.Arch == ArchAMD64:
		return r.AMD64 == other.AMD64
	case r.Arch == ArchARM64:
		return r.ARM64 == other.ARM64
	}
	return true
}

// Known returns the registers whose values are certain, as bits: see AMD64.Known and ARM64.Known.
func (r *Registers) Known() uint64 {
	switch r.Arch {
	case ArchAMD64:
		return uint64(r.AMD64.Known)
	case ArchARM64:
		return r.ARM64.Known
	}
	return 0
}

// SetKnown sets these bits.
func (r *Registers) SetKnown(bits uint64) {
	switch r.Arch {
	case ArchAMD64:
		r.AMD64.Known = uint32(bits)
	case ArchARM64:
		r.ARM64.Known = bits
	}
}

// The general registers that functions preserve on every system, except the stack pointer, as bits of Known.
const (
	preservedAMD64 = 1<<RBX | 1<<RBP | 0xf<<R12
	preservedARM64 = 0x7ff << 19 // x19-x29
)

// Preserves reports whether functions preserve a general register on every system. i is its
// number in GPR or X.
func (r *Registers) Preserves(i int) bool {
	if r.Arch == ArchARM64 {
		return preservedARM64>>i&1 != 0
	}
	return preservedAMD64>>i&1 != 0
}

// Lost returns the registers that functions preserve on every system and whose values are unknown, as bits of
// Known. A frame's caller cannot be found without them.
func (r *Registers) Lost() uint64 {
	switch r.Arch {
	case ArchAMD64:
		return preservedAMD64 &^ uint64(r.AMD64.Known)
	case ArchARM64:
		return preservedARM64 &^ r.ARM64.Known
	}
	return ^uint64(0)
}
