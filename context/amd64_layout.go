package context

import "encoding/binary"

// amd64Offsets holds the offset of each register in a layout, in bytes; -1: missing.
type amd64Offsets struct {
	name string
	size int // smallest size of a context with all listed registers
	rip  int
	gpr  [16]int
	xmm  int // of XMM6, the next ten follow at 16 bytes; -1: none
	mask int // of ContextFlags, -1: none
}

// Win32 and PAL: winnt.h, struct _CONTEXT for _AMD64_; dotnet/runtime
// src/coreclr/pal/inc/pal.h. UContext: arch/x86/include/uapi/asm/sigcontext.h
// behind uc_flags, uc_link and uc_stack (40 bytes). PRStatus and UserRegs:
// arch/x86/include/asm/user_64.h, behind 112 bytes of elf_prstatus.
var amd64Layouts = [...]amd64Offsets{
	Win32AMD64: {"Win32 AMD64 CONTEXT", 1232, 0xf8, win32GPR, 0x1a0 + 6*16, 0x30},
	PALAMD64:   {"PAL AMD64 CONTEXT", 1232, 0xf8, win32GPR, 0x1a0 + 6*16, 0x30},
	UContextAMD64: {"Linux x86-64 ucontext", 40 + 17*8, 40 + 16*8,
		[16]int{RAX: 144, RCX: 152, RDX: 136, RBX: 128, RSP: 160, RBP: 120, RSI: 112, RDI: 104, R8: 40,
			R9: 48, R10: 56, R11: 64, R12: 72, R13: 80, R14: 88, R15: 96}, -1, -1},
	PRStatusAMD64: {"Linux x86-64 NT_PRSTATUS", 112 + 27*8, 112 + 16*8, shift(userGPR, 112), -1, -1},
	UserRegsAMD64: {"Linux x86-64 user_regs_struct", 27 * 8, 16 * 8, userGPR, -1, -1},
}

var win32GPR = [16]int{0x78, 0x80, 0x88, 0x90, 0x98, 0xa0, 0xa8, 0xb0, 0xb8, 0xc0,
	0xc8, 0xd0, 0xd8, 0xe0, 0xe8, 0xf0}

var userGPR = [16]int{RAX: 80, RCX: 88, RDX: 96, RBX: 40, RSP: 152, RBP: 32, RSI: 104, RDI: 112, R8: 72,
	R9: 64, R10: 56, R11: 48, R12: 24, R13: 16, R14: 8, R15: 0}

func shift(offsets [16]int, by int) [16]int {
	for i := range offsets {
		offsets[i] += by
	}
	return offsets
}

// contextAMD64 is CONTEXT_AMD64|CONTEXT_CONTROL|INTEGER|FLOATING_POINT.
const contextAMD64 = 0x0010000b

func (o *amd64Offsets) read(b []byte, r *AMD64) {
	r.RIP = binary.LittleEndian.Uint64(b[o.rip:])
	for i, at := range o.gpr {
		r.GPR[i] = binary.LittleEndian.Uint64(b[at:])
	}
	r.Known = 1<<16 - 1
	if o.xmm >= 0 {
		for i := range r.XMM {
			r.XMM[i][0] = binary.LittleEndian.Uint64(b[o.xmm+16*i:])
			r.XMM[i][1] = binary.LittleEndian.Uint64(b[o.xmm+16*i+8:])
		}
		r.Known = AMD64All
	}
}

func (o *amd64Offsets) write(b []byte, r *AMD64) {
	binary.LittleEndian.PutUint64(b[o.rip:], r.RIP)
	for i, at := range o.gpr {
		if r.Known>>i&1 == 1 {
			binary.LittleEndian.PutUint64(b[at:], r.GPR[i])
		}
	}
	for i := range r.XMM {
		if o.xmm >= 0 && r.Known>>(16+i)&1 == 1 {
			binary.LittleEndian.PutUint64(b[o.xmm+16*i:], r.XMM[i][0])
			binary.LittleEndian.PutUint64(b[o.xmm+16*i+8:], r.XMM[i][1])
		}
	}
	if o.mask >= 0 {
		binary.LittleEndian.PutUint32(b[o.mask:], contextAMD64)
	}
}
