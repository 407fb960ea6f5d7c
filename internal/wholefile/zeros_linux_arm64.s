#include "textflag.h"

// The kernel calls onBus with the signal in R0, a siginfo in R1, and a ucontext in R2. All registers are the
// fault's own again after it.
TEXT ·onBus(SB), NOSPLIT|NOFRAME, $0-0
	MOVW 8(R1), R9       // si_code
	CMPW $2, R9          // BUS_ADRERR
	BNE  next
	MOVD R1, R19
	MOVD R2, R20
	MOVD 16(R1), R0      // si_addr
	MOVD ·pageSize(SB), R1
	NEG  R1, R9
	AND  R9, R0, R0
	MOVD R0, R21
	MOVD $3, R2          // PROT_READ|PROT_WRITE
	MOVD $0x32, R3       // MAP_PRIVATE|MAP_FIXED|MAP_ANONYMOUS
	MOVD $-1, R4
	MOVD $0, R5
	MOVD $222, R8        // mmap
	SVC
	CMP  R0, R21
	BNE  failed
	MOVD $·zeroPages(SB), R9

again:
	LDAXR (R9), R10
	ADD   $1, R10
	STLXR R10, (R9), R11
	CBNZ  R11, again
	RET

failed:
	MOVD $7, R0          // SIGBUS
	MOVD R19, R1
	MOVD R20, R2

next:
	MOVD ·nextHandler(SB), R9
	JMP  (R9)

TEXT ·onBusAddress(SB), NOSPLIT, $0-8
	MOVD $·onBus(SB), R0
	MOVD R0, ret+0(FP)
	RET
