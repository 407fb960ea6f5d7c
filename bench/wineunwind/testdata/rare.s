# Functions of kinds that compilers seldom or never make; they never run. Each
# has unwind information that is true of its instructions.

	.intel_syntax noprefix
	.text

	.globl machine_frame
	.def machine_frame; .scl 2; .type 32; .endef
	.seh_proc machine_frame
machine_frame:
	.seh_pushframe
	push rbx
	.seh_pushreg rbx
	sub rsp, 40
	.seh_stackalloc 40
	.seh_endprologue
	call other
	nop
	int3
	.seh_endproc

	.globl machine_frame_code
	.def machine_frame_code; .scl 2; .type 32; .endef
	.seh_proc machine_frame_code
machine_frame_code:
	.seh_pushframe code
	push rbp
	.seh_pushreg rbp
	push r15
	.seh_pushreg r15
	sub rsp, 72
	.seh_stackalloc 72
	movaps [rsp+32], xmm6
	.seh_savexmm xmm6, 32
	movaps [rsp+48], xmm15
	.seh_savexmm xmm15, 48
	.seh_endprologue
	call other
	nop
	int3
	.seh_endproc

# Saves beyond what a scaled 16-bit operand reaches, an allocation beyond 512 KiB.
	.globl far
	.def far; .scl 2; .type 32; .endef
	.seh_proc far
far:
	sub rsp, 0x200008
	.seh_stackalloc 0x200008
	mov [rsp+0x100000], rbx
	.seh_savereg rbx, 0x100000
	mov [rsp+0x100008], r14
	.seh_savereg r14, 0x100008
	movaps [rsp+0x180000], xmm7
	.seh_savexmm xmm7, 0x180000
	movaps [rsp+0x20], xmm8
	.seh_savexmm xmm8, 0x20
	.seh_endprologue
	call other
	movaps xmm8, [rsp+0x20]
	movaps xmm7, [rsp+0x180000]
	mov r14, [rsp+0x100008]
	mov rbx, [rsp+0x100000]
	add rsp, 0x200008
	ret
	.seh_endproc

# A frame larger than the test's stack: what was saved cannot be read.
	.globl beyond
	.def beyond; .scl 2; .type 32; .endef
	.seh_proc beyond
beyond:
	push rbx
	.seh_pushreg rbx
	sub rsp, 0x800000
	.seh_stackalloc 0x800000
	.seh_endprologue
	call other
	add rsp, 0x800000
	pop rbx
	ret
	.seh_endproc

# Frame registers other than RBP, some distance above the stack pointer. As the
# base of an address R12 needs one byte more.
	.macro framed name, reg, distance
	.globl \name
	.def \name; .scl 2; .type 32; .endef
	.seh_proc \name
\name:
	push \reg
	.seh_pushreg \reg
	push rsi
	.seh_pushreg rsi
	sub rsp, 0x108
	.seh_stackalloc 0x108
	lea \reg, [rsp+\distance]
	.seh_setframe \reg, \distance
	mov [\reg+0x90-\distance], rdi
	.seh_savereg rdi, 0x90
	movaps [\reg+0x40-\distance], xmm9
	.seh_savexmm xmm9, 0x40
	.seh_endprologue
	sub rsp, rcx
	call other
	movaps xmm9, [\reg+0x40-\distance]
	mov rdi, [\reg+0x90-\distance]
	lea rsp, [\reg+0x108-\distance]
	pop rsi
	pop \reg
	ret
	lea rsp, [\reg+0x108-\distance]
	pop rsi
	pop \reg
	jmp other
	.seh_endproc
	.endm

	framed frame_rbx, rbx, 0x20
	framed frame_r15, r15, 0
	framed frame_r12, r12, 0x80
	framed frame_r13, r13, 0xf0

# Every way to leave a function.
	.macro ways name, last:vararg
	.globl \name
	.def \name; .scl 2; .type 32; .endef
	.seh_proc \name
\name:
	push r12
	.seh_pushreg r12
	push rbx
	.seh_pushreg rbx
	sub rsp, 0x88
	.seh_stackalloc 0x88
	.seh_endprologue
	call other
	add rsp, 0x88
	pop rbx
	pop r12
	\last
	.seh_endproc
	.endm

	ways plain, ret
	ways rep_ret, rep ret
	ways bnd_ret, bnd ret
	ways ret_imm16, ret 0x20
	ways jump_near, jmp other
	ways jump_memory, jmp [rip+pointer]
	ways jump_register, rex.w jmp rax
	ways jump_register_memory, rex.w jmp [rax+8]
	ways jump_self, jmp jump_self
	ways a_switch, jmp rax
	ways a_table, jmp [rax+8*rcx]

other:
	ret

	.data
pointer:
	.quad other
