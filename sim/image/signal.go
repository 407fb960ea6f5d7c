package image

// SignalReturn makes the trampoline a signal handler of Linux returns to:
// __restore_rt of glibc, __kernel_rt_sigreturn of the ARM64 vDSO. A nop stands
// before it, since walkers look up return addresses with one byte less.
//
// Its rows are of the kernel's frame, at which SP is when it runs; see
// SignalLayout.
func SignalReturn(a Arch) Func {
	f := Func{Name: "__restore_rt", Entry: SignalFrame}
	codes := [][]byte{{0x90}, {0x48, 0xc7, 0xc0, 15, 0, 0, 0}, {0x0f, 0x05}}
	if a == ARM64 {
		f.Name = "__kernel_rt_sigreturn"
		codes = [][]byte{{0x1f, 0x20, 0x03, 0xd5}, {0x68, 0x11, 0x80, 0xd2}, {0x01, 0x00, 0x00, 0xd4}}
	}
	off := uint32(0)
	for _, c := range codes {
		f.Ops = append(f.Ops, Op{Off: off, Code: c, Part: Body})
		off += uint32(len(c))
	}
	f.Ops[2].Effects = []Effect{{Kind: Return}}
	return f
}

// SignalEntry is the offset of the trampoline's first instruction, past the nop.
func SignalEntry(a Arch) uint32 {
	if a == ARM64 {
		return 4
	}
	return 1
}

// SignalFrameLayout has the places of the interrupted registers in a signal frame. They are
// distances in bytes from SP at the trampoline. SP is then the address of the ucontext on
// x86-64, and of the siginfo on ARM64.
type SignalFrameLayout struct {
	Regs [32]int64 // by general register, SP included
	V    [32]int64 // by vector register; 0: in no place that a walker reads
	PC   int64
	Size int64 // bytes of the whole frame
}

// SignalFPSIMD is where the vector registers' record begins in ARM64's signal
// frame: the first in the 4096 bytes of records.
const SignalFPSIMD = 128 + 176 + 288

// SignalLayout returns the layout of struct rt_sigframe.
//
// Source for x86-64: Linux arch/x86/include/uapi/asm/sigcontext.h. sigcontext_64 is at 40 bytes
// in the ucontext.
//
// Source for ARM64: Linux arch/arm64/include/uapi/asm/{sigcontext,ucontext}.h. The siginfo has
// 128 bytes. The sigcontext is at 176 in the ucontext, and its regs at 8. The vector registers
// begin 16 bytes after the start of the fpsimd_context at SignalFPSIMD.
func SignalLayout(a Arch) SignalFrameLayout {
	if a == ARM64 {
		l := SignalFrameLayout{PC: 128 + 176 + 8 + 32*8, Size: 128 + 176 + 8 + 34*8 + 8 + 4096}
		for r := range l.Regs {
			l.Regs[r] = 128 + 176 + 8 + int64(r)*8
			l.V[r] = SignalFPSIMD + 16 + int64(r)*16
		}
		return l
	}
	// r8-r15 rdi rsi rbp rbx rdx rax rcx rsp rip, 8 bytes each.
	l := SignalFrameLayout{PC: 40 + 16*8, Size: 40 + 256 + 128 + 128}
	for i, r := range [...]Reg{8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4} {
		l.Regs[r] = 40 + int64(i)*8
	}
	return l
}
