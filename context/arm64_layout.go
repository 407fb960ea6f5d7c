package context

import "encoding/binary"

// arm64Offsets holds the offset of each register in a layout, in bytes.
type arm64Offsets struct {
	name    string
	size    int // smallest size of a context with all listed registers
	x       int // of X0; X1 to X30, SP, and PC follow, 8 bytes each
	d       int // of V8; V9 to V15 follow, 16 bytes each; -1: none
	mask    int // of ContextFlags, -1: none
	records int // of extension records, which may hold the vector registers; -1: none
}

// Win32 and PAL: winnt.h, struct _ARM64_NT_CONTEXT; dotnet/runtime
// src/coreclr/pal/inc/pal.h. UContext: arch/arm64/include/uapi/asm/sigcontext.h
// after uc_flags, uc_link, uc_stack, and the signal mask of 128 bytes: 176 bytes with
// the alignment. PRStatus and UserRegs: struct user_pt_regs of
// arch/arm64/include/uapi/asm/ptrace.h, in PRStatus after 112 bytes of elf_prstatus.
var arm64Layouts = [...]arm64Offsets{
	//lint:ignore SA4000 the first row is counted from itself, as the others are from it
	Win32ARM64 - Win32ARM64:    {"Win32 ARM64 CONTEXT", 912, 0x08, 0x110 + 8*16, 0, -1},
	PALARM64 - Win32ARM64:      {"PAL ARM64 CONTEXT", 912, 0x08, 0x110 + 8*16, 0, -1},
	UContextARM64 - Win32ARM64: {"Linux ARM64 ucontext", 176 + 288, 176 + 8, -1, -1, 176 + 288},
	PRStatusARM64 - Win32ARM64: {"Linux ARM64 NT_PRSTATUS", 112 + 34*8, 112, -1, -1, -1},
	UserRegsARM64 - Win32ARM64: {"Linux ARM64 user_pt_regs", 34 * 8, 0, -1, -1, -1},
}

// contextARM64 is CONTEXT_ARM64|CONTEXT_CONTROL|INTEGER|FLOATING_POINT.
const contextARM64 = 0x00400007

// The extension record that holds the vector registers: magic and size, FPSR,
// FPCR, then V0 to V31.
const (
	fpsimdMagic  = 0x46508001
	fpsimdSize   = 16 + 32*16
	fpsimdV8     = 16 + 8*16
	recordsBytes = 4096 // room for the records in a sigcontext
)

func (o *arm64Offsets) read(b []byte, r *ARM64) {
	for i := range r.X {
		r.X[i] = binary.LittleEndian.Uint64(b[o.x+8*i:])
	}
	r.Sp = binary.LittleEndian.Uint64(b[o.x+31*8:])
	r.PC = binary.LittleEndian.Uint64(b[o.x+32*8:])
	r.Known = 1<<len(r.X) - 1
	if v := o.vectors(b); v != nil {
		for i := range r.D {
			r.D[i] = binary.LittleEndian.Uint64(v[16*i:])
		}
		r.Known = ARM64All
	}
}

func (o *arm64Offsets) write(b []byte, r *ARM64) {
	for i, v := range r.X {
		if r.Known>>i&1 == 1 {
			binary.LittleEndian.PutUint64(b[o.x+8*i:], v)
		}
	}
	binary.LittleEndian.PutUint64(b[o.x+31*8:], r.Sp)
	binary.LittleEndian.PutUint64(b[o.x+32*8:], r.PC)
	if v := o.vectors(b); v != nil {
		for i := range r.D {
			if r.Known>>(32+i)&1 == 1 {
				binary.LittleEndian.PutUint64(v[16*i:], r.D[i])
			}
		}
	}
	if o.mask >= 0 {
		binary.LittleEndian.PutUint32(b[o.mask:], contextARM64)
	}
}

// vectors returns the part of a context from V8 on, at least V8 to V15, or nil if it has none.
func (o *arm64Offsets) vectors(b []byte) []byte {
	switch {
	case o.d >= 0:
		return b[o.d:]
	case o.records >= 0:
		return fpsimd(b[o.records:min(len(b), o.records+recordsBytes)])
	}
	return nil
}

// fpsimd searches the extension records for the vector registers. Each record contains its size, a multiple
// of 16; one with magic 0 is the last.
func fpsimd(b []byte) []byte {
	for len(b) >= 8 {
		magic, size := binary.LittleEndian.Uint32(b), uint64(binary.LittleEndian.Uint32(b[4:]))
		switch {
		case magic == 0 || size < 16 || size%16 != 0 || size > uint64(len(b)):
			return nil
		case magic == fpsimdMagic && size >= fpsimdSize:
			return b[fpsimdV8:size]
		}
		b = b[size:]
	}
	return nil
}
