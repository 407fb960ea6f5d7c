package arm64

import (
	"encoding/binary"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// What the bytes of code without unwind data show.

// Instructions (Arm Architecture Reference Manual, A64 base instructions).
const (
	insMovX8Sigreturn = 0xd2801168 // mov x8, #139
	insSVC            = 0xd4000001 // svc #0
	insPLT0Push       = 0xa9bf7bf0 // stp x16, x30, [sp, #-16]!
	insBRX17          = 0xd61f0220 // br x17
	insNop            = 0xd503201f
	insPACIBSP        = 0xd503237f // bit 6 is clear in paciasp
)

// codeWord returns the instruction at addr: from the module's image, or else from the window (the kernel's
// trampoline page is in no image), or else 0 and false. m and mem may be nil.
func codeWord(m *module.Module, addr uint64, mem *memory.Window) (uint32, bool) {
	var b []byte
	if m != nil {
		b = m.Bytes(addr, 4)
	}
	if len(b) < 4 && mem != nil {
		b, _ = mem.Bytes(addr, 4)
	}
	if len(b) < 4 || addr&3 != 0 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}

// inTrampoline reports whether pc is at one of a signal trampoline's two instructions. A handler's return
// address is the first one's, without a call before it.
func inTrampoline(m *module.Module, pc uint64, mem *memory.Window) bool {
	switch w, _ := codeWord(m, pc, mem); w {
	case insMovX8Sigreturn:
		w, _ = codeWord(m, pc+4, mem)
		return w == insSVC
	case insSVC:
		w, _ = codeWord(m, pc-4, mem)
		return w == insMovX8Sigreturn
	}
	return false
}

// The kernel's signal frame, from SP on: siginfo, ucontext with mcontext,
// extension records (arch/arm64/include/uapi/asm/sigcontext.h).
const (
	sigMcontext = 128 + 176
	sigX0       = sigMcontext + 8
	sigSP       = sigX0 + 31*8
	sigPC       = sigSP + 8
	sigRecords  = sigMcontext + 288
	sigRecEnd   = sigRecords + 4096

	fpsimdMagic = 0x46508001
	fpsimdV0    = 16
)

// sigreturn reads the interrupted registers. It returns false if a word is missing; the vector registers are
// unknown if their record is missing.
func sigreturn(sp uint64, mem *memory.Window) (to Registers, ok bool) {
	for i := range to.X {
		if to.X[i], ok = mem.Word(sp + sigX0 + 8*uint64(i)); !ok {
			return to, false
		}
	}
	to.Known = 1<<31 - 1
	if to.Sp, ok = mem.Word(sp + sigSP); !ok {
		return to, false
	}
	to.PC, ok = mem.Word(sp + sigPC)
	sigVectors(sp, mem, &to)
	return to, ok
}

// sigVectors searches the extension records for the vector registers.
func sigVectors(sp uint64, mem *memory.Window, to *Registers) {
	for off := uint64(sigRecords); off < sigRecEnd; {
		head, ok := mem.Word(sp + off)
		size := head >> 32
		if !ok || size < 16 || size&15 != 0 {
			return
		}
		if uint32(head) == fpsimdMagic {
			for i := range to.D {
				if v, ok := mem.Word(sp + off + fpsimdV0 + 16*uint64(8+i)); ok {
					to.D[i] = v
					to.Known |= 1 << (32 + i)
				}
			}
			return
		}
		off += size
	}
}

// plt0Pushed returns how many bytes a linkage table's first entry, which resolves lazily bound functions, has
// pushed at pc; false if pc is not in one.
func plt0Pushed(m *module.Module, pc uint64) (uint64, bool) {
	const last = 4 // stp, adrp, ldr, add, br
	for back := uint64(0); back <= last; back++ {
		if w, ok := codeWord(m, pc-4*back, nil); ok && w == insPLT0Push {
			w, ok = codeWord(m, pc+4*(last-back), nil)
			return min(back, 1) * 16, ok && w == insBRX17
		}
	}
	return 0, false
}
