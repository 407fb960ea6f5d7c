/* Windows calls that the probe needs for events. A thread's block (TEB, winternl.h) has
 * its ID and the start of its stack. */
#ifndef SEEDWALK_SYS_WINDOWS_H
#define SEEDWALK_SYS_WINDOWS_H

#include <stddef.h>
#include <stdint.h>
#include <windows.h>

#undef NEAR /* a keyword of compilers for 16 bits */

#define P(x) ((uint64_t)(uintptr_t)(x))

static inline uint32_t own_tid(void) { return GetCurrentThreadId(); }

/* thread_base is where the thread's stack begins. */
static inline uint64_t thread_base(void)
{
	uint64_t base; /* NT_TIB.StackBase */
	__asm__ volatile("mov %%gs:8, %0" : "=r"(base));
	return base;
}

static inline uint64_t library_base(void) { return thread_base(); }

static inline uint64_t now(void)
{
	LARGE_INTEGER at, frequency; /* neither call leaves user mode */
	QueryPerformanceCounter(&at);
	QueryPerformanceFrequency(&frequency);
	uint64_t f = (uint64_t)frequency.QuadPart, t = (uint64_t)at.QuadPart;
	return t / f * 1000000000u + t % f * 1000000000u / f;
}

/* The callee-saved registers at the entry of a function, and the caller's ip and sp. */
struct kept { uint64_t ip, sp, bx, bp, r12, r13, r14, r15, si, di; };

static inline void kept_registers(uint64_t *to, const struct kept *k)
{
	for (int i = 0; i < SW_REGS; i++)
		to[i] = 0;
	to[4] = k->r12, to[5] = k->r13, to[6] = k->r14, to[7] = k->r15, to[8] = k->di, to[9] = k->si;
	to[10] = k->bp, to[11] = k->bx, to[15] = k->sp, to[16] = k->ip;
}

/* DELIVERED is EventPipeEventDelivered, as on Linux. The first four arguments are in
 * registers, the others above room for these. */
#define DELIVERED \
	"\tsub $152, %rsp\n\t.seh_stackalloc 152\n\t.seh_endprologue\n" \
	"\tmov 152(%rsp), %rax\n\tmov %rax, 64(%rsp)\n\tlea 160(%rsp), %rax\n\tmov %rax, 72(%rsp)\n" \
	"\tmov %rbx, 80(%rsp)\n\tmov %rbp, 88(%rsp)\n\tmov %r12, 96(%rsp)\n\tmov %r13, 104(%rsp)\n" \
	"\tmov %r14, 112(%rsp)\n\tmov %r15, 120(%rsp)\n\tmov %rsi, 128(%rsp)\n\tmov %rdi, 136(%rsp)\n" \
	"\tmov 216(%rsp), %r9\n\tmov 208(%rsp), %eax\n\tmov %eax, 32(%rsp)\n\tlea 64(%rsp), %rax\n\tmov %rax, 40(%rsp)\n" \
	"\tcall sw_event\n\txor %eax, %eax\n\tadd $152, %rsp\n\tret\n"

#endif
