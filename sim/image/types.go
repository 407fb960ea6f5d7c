// Package image makes the modules of the simulator: functions with machine code
// and matching unwind data, in PE and ELF files, for x86-64 and ARM64.
//
// Sources: Microsoft's x64 and ARM64 exception handling documents and the PE/COFF
// specification; the ELF and DWARF 5 standards; the Intel SDM and the Arm ARM
// for instruction encodings.
//
// Glossary. An *effect* is one change of the machine's state; an *op* is one
// instruction with its effects. A *row* says where the caller's registers are
// at an instruction. A *module* here is an image placed at an address.
//
// Strategy. A function is a list of ops. This package makes its bytes, its unwind data, and
// its rows from that list. The code shares nothing with the readers in pe, elf, and cfi, so
// that the same mistake cannot be in both. The simulated CLR unwinds by the rows, and seedwalk
// reads the unwind data.
//
// Known gaps: it generates only the instructions of prologs, epilogs, calls, and padding.
package image

// Arch is an instruction set.
type Arch uint8

const (
	AMD64 Arch = iota
	ARM64
)

func (a Arch) String() string { return [...]string{"amd64", "arm64"}[a&1] }

// Format is an image format.
type Format uint8

const (
	PE  Format = iota // Windows: UNWIND_INFO, or packed and .xdata
	ELF               // Linux: .eh_frame
)

func (f Format) String() string { return [...]string{"pe", "elf"}[f&1] }

// Reg is a general register: on x86-64 in UNWIND_INFO numbering (RSP is 4), on
// ARM64 0-30 are X0-X30 and 31 is SP. Vector registers are numbered apart.
type Reg uint8

// SP returns the number of the stack pointer.
func (a Arch) SP() Reg {
	if a == ARM64 {
		return 31
	}
	return 4
}

// FP returns the number of the frame pointer: RBP, X29.
func (a Arch) FP() Reg {
	if a == ARM64 {
		return 29
	}
	return 5
}

// EffectKind is what an effect does.
type EffectKind uint8

const (
	Add     EffectKind = iota // Reg = Base + Imm (Reg or Base may be SP)
	AddReg                    // Reg = Reg + the register Base: a dynamic allocation
	Store                     // 8 bytes of Reg to [Base+Imm]
	Load                      // Reg from [Base+Imm]
	StoreV                    // vector register Reg to [Base+Imm]: 16 bytes on x86-64, the low 8 on ARM64
	LoadV                     // the reverse
	Sign                      // pointer authentication: changes the high bits of X30, as a signature does
	Auth                      // the reverse
	Set                       // Reg = Imm
	Reserve                   // x86-64: a push that makes room for a return address, see RedirectStub
	Call                      // a call: what it calls is up to the running thread
	Return                    // pc = the return address (popped on x86-64, X30 on ARM64)
	Jump                      // a tail call: leaves the function, as Return does for the frame
)

// Effect is one change of state. The effects of one op happen in order, with no sample between them.
type Effect struct {
	Kind EffectKind
	Reg  Reg
	Base Reg
	Imm  int64
}

// Part is where in a function an op stands.
type Part uint8

const (
	Prolog Part = iota
	Body
	Epilog
)

// Op is one instruction.
type Op struct {
	Off     uint32 // from the function's first byte
	Code    []byte // its machine code
	Part    Part
	Effects []Effect // none: an instruction that changes nothing a walk sees
}

// Entry is how a function is entered. It determines where the caller's registers are.
type Entry uint8

const (
	Called           Entry = iota // by a call: a return address
	MachineFrame                  // by a trap (PE x64): RIP CS EFLAGS RSP SS from the stack's top
	MachineFrameCode              // the same under an error code
	SignalFrame                   // by the return of a signal handler: SP is at the kernel's frame; see SignalReturn
)

// Func is a function that was placed in an image.
type Func struct {
	Name string
	RVA  uint32 // from the image's base
	Size uint32 // bytes, padding excluded
	Ops  []Op   // in address order, executed in that order; a Return or a Jump ends the function
	// Chained splits the unwind data of a PE function: ops from this offset on
	// are described by an entry of their own (0 = not split).
	Chained uint32
	// NoInfo leaves the function without unwind data (leaf functions of PE, code
	// of an assembler).
	NoInfo bool
	// Root marks a thread's first function: no caller.
	Root  bool
	Entry Entry
	rows  []Row // Rows, kept by Build
}

// End returns the RVA one past the last byte.
func (f *Func) End() uint32 { return f.RVA + f.Size }

// At returns the index of the op that begins at offset off, or -1.
func (f *Func) At(off uint32) int {
	lo, hi := 0, len(f.Ops)
	for lo < hi {
		if m := (lo + hi) / 2; f.Ops[m].Off < off {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo < len(f.Ops) && f.Ops[lo].Off == off {
		return lo
	}
	return -1
}

// Image is a module's bytes and what is true of them.
type Image struct {
	Arch   Arch
	Format Format
	Name   string
	Base   uint64 // the address it is meant to be mapped at
	File   []byte // as it would stand on disk; File is mapped 1:1 (RVA = offset)
	Text   [2]uint32
	Funcs  []Func // sorted by RVA, not overlapping
}

// End returns the address one past the image.
func (m *Image) End() uint64 { return m.Base + uint64(len(m.File)) }

// Find returns the function whose code holds addr, or nil.
func (m *Image) Find(addr uint64) *Func {
	if addr < m.Base || addr >= m.End() {
		return nil
	}
	rva := uint32(addr - m.Base)
	lo, hi := 0, len(m.Funcs)
	for lo < hi {
		if c := (lo + hi) / 2; m.Funcs[c].End() <= rva {
			lo = c + 1
		} else {
			hi = c
		}
	}
	if lo < len(m.Funcs) && m.Funcs[lo].RVA <= rva {
		return &m.Funcs[lo]
	}
	return nil
}
