/* The kernel without a C library: the probe is one file for glibc and musl, so
 * nothing of either's may be in it. Layouts are the kernel's (uapi asm/signal.h,
 * asm/ucontext.h, asm-generic/siginfo.h), which are not those of the libraries. */
#ifndef SEEDWALK_SYS_H
#define SEEDWALK_SYS_H

#include <stddef.h>
#include <stdint.h>

enum {
	NR_read = 0, NR_open = 2, NR_close = 3, NR_mmap = 9, NR_munmap = 11, NR_rt_sigaction = 13, NR_rt_sigprocmask = 14, NR_rt_sigreturn = 15,
	NR_nanosleep = 35, NR_getpid = 39, NR_socket = 41, NR_connect = 42, NR_sendmsg = 46, NR_setsockopt = 54, NR_getsockopt = 55,
	NR_ftruncate = 77, NR_prctl = 157, NR_arch_prctl = 158, NR_gettid = 186, NR_futex = 202, NR_timer_create = 222,
	NR_timer_settime = 223, NR_timer_delete = 226, NR_clock_gettime = 228, NR_process_vm_readv = 310,
	NR_getrandom = 318, NR_memfd_create = 319,
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

static inline long sys3(long n, long a, long b, long c) { return sys6(n, a, b, c, 0, 0, 0); }

#define P(x) ((long)(uintptr_t)(x))

enum { SIGKILL = 9, SIGSTOP = 19, SIGURG = 23, SIG_LAST = 64, SIG_REALTIME = 34 };
enum { SA_SIGINFO = 4, SA_ONSTACK = 0x08000000, SA_RESTART = 0x10000000, SA_RESTORER = 0x04000000 };
enum { SI_TIMER = -2, SI_QUEUE = -1 };
#define SIG_DFL 0ul
#define SIG_IGN 1ul

struct action { /* rt_sigaction's */
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

struct info { /* siginfo, as far as needed */
	int32_t signo, error, code, pad;
	int32_t timer, overrun; /* or pid and uid */
	uint64_t value;
};

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

struct vec { uint64_t base, size; };

static inline long sigaction_raw(int sig, const struct action *set, struct action *old)
{
	return sys6(NR_rt_sigaction, sig, P(set), P(old), 8, 0, 0);
}

static inline uint64_t now(void)
{
	uint64_t t[2] = {0, 0};
	sys3(NR_clock_gettime, 1, P(t), 0); /* CLOCK_MONOTONIC */
	return t[0] * 1000000000ull + t[1];
}

static inline uint32_t own_tid(void) { return (uint32_t)sys3(NR_gettid, 0, 0, 0); }

#endif
