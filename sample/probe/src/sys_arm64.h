/* The kernel on ARM64: its calls, and what it saves of a thread that takes a signal
 * (uapi asm/sigcontext.h, asm-generic/unistd.h). */
#ifndef SEEDWALK_SYS_ARM64_H
#define SEEDWALK_SYS_ARM64_H

#include <stddef.h>
#include <stdint.h>

enum {
	NR_ftruncate = 46, NR_openat = 56, NR_close = 57, NR_read = 63, NR_pread64 = 67, NR_futex = 98, NR_nanosleep = 101, NR_timer_create = 107,
	NR_timer_settime = 110, NR_timer_delete = 111, NR_clock_gettime = 113, NR_rt_sigaction = 134, NR_rt_sigprocmask = 135,
	NR_rt_sigreturn = 139, NR_prctl = 167, NR_getpid = 172, NR_gettid = 178, NR_socket = 198, NR_connect = 203, NR_setsockopt = 208,
	NR_getsockopt = 209, NR_sendmsg = 211, NR_munmap = 215, NR_mmap = 222, NR_process_vm_readv = 270, NR_process_vm_writev = 271, NR_getrandom = 278,
	NR_fallocate = 47, O_TMPFILE = 020040000, NR_memfd_create = 279,
};

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}

static inline long sys3(long n, long a, long b, long c) { return sys6(n, a, b, c, 0, 0, 0); }

struct frame { /* ucontext as far as needed */
	uint64_t flags, link;
	uint64_t alt_sp;
	int32_t alt_flags, pad;
	uint64_t alt_size;
	uint64_t mask[17];
	uint64_t fault;
	uint64_t regs[33]; /* x0-x30 sp pc */
	uint64_t pstate, pad2;
	struct { uint32_t magic, size; uint64_t status; uint64_t v[32][2]; } vectors; /* the first of the records that follow */
};
_Static_assert(offsetof(struct frame, vectors) == 464, "ucontext");
enum { REG_FP = 29, REG_LR = 30, REG_SP = 31, REG_IP = 32, FPSIMD = 0x46508001 };

/* copy_bytes copies bytes of a thread's own stack, which is readable. */
static inline void copy_bytes(void *to, uint64_t from, uint64_t n)
{
	char *t = to;
	for (; n >= 16; n -= 16, from += 16, t += 16) {
		uint64_t a, b;
		__asm__ volatile("ldp %0, %1, [%2]\n\tstp %0, %1, [%3]" : "=&r"(a), "=&r"(b) : "r"(from), "r"(t) : "memory");
	}
	for (; n > 0; n--)
		*t++ = *(const volatile char *)(uintptr_t)from++;
}

/* thread_base is where the C library keeps the thread: above its stack. */
static inline uint64_t thread_base(void)
{
	uint64_t base;
	__asm__("mrs %0, tpidr_el0" : "=r"(base));
	return base;
}

static inline uint64_t library_base(void) { return thread_base(); }

static inline long open_file(const char *path, long flags) { return sys6(NR_openat, -100 /* AT_FDCWD */, (long)(uintptr_t)path, flags, 0, 0, 0); }

/* first_context is where the kernel put the frame of the signal that brought a thread
 * to its alternate stack: at that stack's top, below a frame record. */
static inline uint64_t first_context(const struct frame *uc)
{
	enum { SIGINFO = 128, UCONTEXT = 4560, RECORD = 16 };
	return ((uc->alt_sp + uc->alt_size - RECORD) & ~15ull) - UCONTEXT;
}

/* is_first reports whether that frame is at an address: the record of the vector
 * registers comes first. */
static inline int is_first(const struct frame *first, uint64_t at)
{
	(void)at;
	return first->vectors.magic == FPSIMD && first->vectors.size == 528;
}

enum { VECTORS = 8, FIRST_VECTOR = 8 }; /* d8 to d15 are what functions preserve */

/* blocked_mask is what the thread blocks again when the handler returns. */
static inline uint64_t *blocked_mask(struct frame *uc) { return uc->mask; }

/* registers copies the registers that a record holds. */
static inline void registers(uint64_t *to, const struct frame *uc)
{
	for (int i = 0; i < REG_IP + 1; i++)
		to[i] = uc->regs[i];
	for (int i = 0; i < VECTORS; i++)
		to[REG_IP + 1 + i] = uc->vectors.magic == FPSIMD ? uc->vectors.v[FIRST_VECTOR + i][0] : 0;
}

/* is_returning reports whether an epilog has loaded a replaced return address into x30. */
static inline int is_returning(const struct frame *uc, uint64_t patch) { return patch && uc->regs[REG_LR] == patch; }

/* The callee-saved registers at the entry of a function, and the caller's ip and sp. */
struct kept { uint64_t ip, sp, x[11], d[VECTORS], pad; }; /* x19-x29 */

static inline void kept_registers(uint64_t *to, const struct kept *k)
{
	for (int i = 0; i < REG_IP + 1; i++)
		to[i] = 0;
	for (int i = 0; i < 11; i++)
		to[19 + i] = k->x[i];
	for (int i = 0; i < VECTORS; i++)
		to[REG_IP + 1 + i] = k->d[i];
	to[REG_LR] = to[REG_IP] = k->ip;
	to[REG_SP] = k->sp;
}

/* DELIVERED is EventPipeEventDelivered(this, provider, id, version, metadata's size,
 * metadata, payload's size, payload, ...): it calls sw_event(this, provider, id,
 * payload, payload's size, kept). */
#define DELIVERED \
	"\tsub sp, sp, #192\n\t.cfi_adjust_cfa_offset 192\n" \
	"\tstp x29, x30, [sp, #176]\n\t.cfi_rel_offset x29, 176\n\t.cfi_rel_offset x30, 184\n" \
	"\tadd x9, sp, #192\n\tstp x30, x9, [sp]\n" \
	"\tstp x19, x20, [sp, #16]\n\tstp x21, x22, [sp, #32]\n\tstp x23, x24, [sp, #48]\n" \
	"\tstp x25, x26, [sp, #64]\n\tstp x27, x28, [sp, #80]\n\tstr x29, [sp, #96]\n" \
	"\tstp d8, d9, [sp, #104]\n\tstp d10, d11, [sp, #120]\n\tstp d12, d13, [sp, #136]\n\tstp d14, d15, [sp, #152]\n" \
	"\tadd x29, sp, #176\n" \
	"\tmov x3, x7\n\tmov w4, w6\n\tmov x5, sp\n" \
	"\tbl sw_event\n" \
	"\tldp x29, x30, [sp, #176]\n\t.cfi_restore x29\n\t.cfi_restore x30\n" \
	"\tadd sp, sp, #192\n\t.cfi_adjust_cfa_offset -192\n\tmov w0, #0\n\tret\n"

#define RESTORER "mov x8, #139\n\tsvc #0\n" /* rt_sigreturn, in the words that unwinders recognize */

#endif
