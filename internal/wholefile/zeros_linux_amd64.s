#include "textflag.h"

// The kernel calls onBus with the signal in DI, a siginfo in SI, and a ucontext in DX. All registers are the
// fault's own again after it.
TEXT ·onBus(SB), NOSPLIT|NOFRAME, $0-0
	CMPL 8(SI), $2       // si_code, BUS_ADRERR
	JNE  next
	MOVQ SI, BX
	MOVQ DX, R12
	MOVQ 16(SI), DI      // si_addr
	MOVQ ·pageSize(SB), SI
	MOVQ SI, AX
	NEGQ AX
	ANDQ AX, DI
	MOVL $3, DX          // PROT_READ|PROT_WRITE
	MOVL $0x32, R10      // MAP_PRIVATE|MAP_FIXED|MAP_ANONYMOUS
	MOVQ $-1, R8
	XORL R9, R9
	MOVL $9, AX          // mmap
	SYSCALL
	CMPQ AX, DI
	JNE  failed
	LOCK
	INCQ ·zeroPages(SB)
	RET

failed:
	MOVL $7, DI          // SIGBUS
	MOVQ BX, SI
	MOVQ R12, DX

next:
	MOVQ ·nextHandler(SB), AX
	JMP  AX

TEXT ·onBusAddress(SB), NOSPLIT, $0-8
	LEAQ ·onBus(SB), AX
	MOVQ AX, ret+0(FP)
	RET
