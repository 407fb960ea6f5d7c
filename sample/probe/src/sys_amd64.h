/* The kernel on x86-64: its calls, and what it saves of a thread that takes a signal. */
#ifndef SEEDWALK_SYS_AMD64_H
#define SEEDWALK_SYS_AMD64_H

#include <stddef.h>
#include <stdint.h>

enum {
	NR_read = 0, NR_open = 2, NR_close = 3, NR_mmap = 9, NR_munmap = 11, NR_rt_sigaction = 13, NR_rt_sigprocmask = 14, NR_rt_sigreturn = 15, NR_pread64 = 17,
	NR_nanosleep = 35, NR_getpid = 39, NR_socket = 41, NR_connect = 42, NR_sendmsg = 46, NR_setsockopt = 54, NR_getsockopt = 55,
	NR_ftruncate = 77, NR_prctl = 157, NR_arch_prctl = 158, NR_gettid = 186, NR_futex = 202, NR_timer_create = 222,
	NR_timer_settime = 223, NR_timer_delete = 226, NR_clock_gettime = 228, NR_process_vm_readv = 310, NR_process_vm_writev = 311,
	NR_fallocate = 285, O_TMPFILE = 020200000, NR_getrandom = 318, NR_memfd_create = 319,
};

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	long r;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return r;
}

static inline long sys3(long n, long a, long b, long c)
{
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
}

struct frame { /* ucontext as far as needed */
	uint64_t flags, link;
	uint64_t alt_sp;
	int32_t alt_flags, pad;
	uint64_t alt_size;
	uint64_t regs[17]; /* r8-r15 rdi rsi rbp rbx rdx rax rcx rsp rip */
	uint64_t rest[6];  /* eflags to cr2 */
	uint64_t fpstate;
};
_Static_assert(offsetof(struct frame, fpstate) == 224, "ucontext");
enum { REG_SP = 15, REG_IP = 16 };

/* copy_bytes copies bytes of a thread's own stack, which is readable. */
static inline void copy_bytes(void *to, uint64_t from, uint64_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

/* thread_base is where the C library keeps the thread: above its stack. */
static inline uint64_t thread_base(void)
{
	uint64_t fs = 0;
	sys6(NR_arch_prctl, 0x1003 /* ARCH_GET_FS */, (long)(uintptr_t)&fs, 0, 0, 0, 0);
	return fs;
}

/* library_base returns thread_base without a system call. The C library stores the address of its thread
 * structure in the structure's first word (ELF Handling For Thread-Local Storage, section 3.4.6). The calling
 * thread must have such a structure. */
static inline uint64_t library_base(void)
{
	uint64_t base;
	__asm__("mov %%fs:0, %0" : "=r"(base));
	return base;
}

static inline long open_file(const char *path, long flags) { return sys3(NR_open, (long)(uintptr_t)path, flags, 0); }

/* first_context is where the kernel put the frame of the signal that brought a thread
 * to its alternate stack: at that stack's top, below as much room for the vector
 * registers as our own frame has. It returns 0 if that stack is too small. */
static inline uint64_t first_context(const struct frame *uc)
{
	enum { SIZES = 464, MAGIC1 = 0x46505853, FXSAVE = 512, UCONTEXT = 304, SIGINFO = 128, RETURN = 8 };
	const uint32_t *sizes = (const uint32_t *)(uc->fpstate + SIZES);
	uint64_t room = uc->fpstate && sizes[0] == MAGIC1 ? sizes[1] : FXSAVE, top = uc->alt_sp + uc->alt_size;
	return room > uc->alt_size ? 0 : ((((top - room) & ~63ull) - UCONTEXT - SIGINFO - RETURN) & ~15ull) - 8 + RETURN;
}

/* is_first reports whether that frame is at an address: it refers to the room right above itself. */
static inline int is_first(const struct frame *first, uint64_t at)
{
	enum { UCONTEXT = 304, SIGINFO = 128, BELOW = UCONTEXT + SIGINFO };
	return first->fpstate % 64 == 0 && first->fpstate - at - BELOW < 64;
}

/* blocked_mask is what the thread blocks again when the handler returns. */
static inline uint64_t *blocked_mask(struct frame *uc) { return (uint64_t *)((char *)uc + 296); }

/* registers copies the registers that a record holds. */
static inline void registers(uint64_t *to, const struct frame *uc)
{
	for (int i = 0; i < REG_IP + 1; i++)
		to[i] = uc->regs[i];
}

/* is_returning returns 0: every return address is on the stack. */
static inline int is_returning(const struct frame *uc, uint64_t patch)
{
	(void)uc, (void)patch;
	return 0;
}

/* The callee-saved registers at the entry of a function, and the caller's ip and sp. */
struct kept { uint64_t ip, sp, bx, bp, r12, r13, r14, r15; };

static inline void kept_registers(uint64_t *to, const struct kept *k)
{
	for (int i = 0; i < REG_IP + 1; i++)
		to[i] = 0;
	to[4] = k->r12, to[5] = k->r13, to[6] = k->r14, to[7] = k->r15;
	to[10] = k->bp, to[11] = k->bx, to[REG_SP] = k->sp, to[REG_IP] = k->ip;
}

/* DELIVERED is EventPipeEventDelivered(this, provider, id, version, metadata's size,
 * metadata, payload's size, payload, ...): it calls sw_event(this, provider, id,
 * payload, payload's size, kept). */
#define DELIVERED \
	"\tmov (%rsp), %r10\n\tlea 8(%rsp), %r11\n\tmov 8(%rsp), %r8d\n\tmov 16(%rsp), %rcx\n" \
	"\tsub $72, %rsp\n\t.cfi_adjust_cfa_offset 72\n" \
	"\tmov %r10, (%rsp)\n\tmov %r11, 8(%rsp)\n\tmov %rbx, 16(%rsp)\n\tmov %rbp, 24(%rsp)\n" \
	"\tmov %r12, 32(%rsp)\n\tmov %r13, 40(%rsp)\n\tmov %r14, 48(%rsp)\n\tmov %r15, 56(%rsp)\n" \
	"\tmov %rsp, %r9\n" \
	"\tcall sw_event\n" \
	"\tadd $72, %rsp\n\t.cfi_adjust_cfa_offset -72\n\txor %eax, %eax\n\tret\n"

#define RESTORER "mov $15, %rax\n\tsyscall\n" /* rt_sigreturn, in the bytes that unwinders recognize */

#endif
