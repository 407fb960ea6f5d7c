/* The kernel without a C library: the probe is one file for glibc and musl, so
 * nothing of either's may be in it. Layouts are the kernel's (uapi asm/signal.h,
 * asm/ucontext.h, asm-generic/siginfo.h), which are not those of the libraries. */
#ifndef SEEDWALK_SYS_H
#define SEEDWALK_SYS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include "sys_amd64.h"
#elif defined(__aarch64__)
#include "sys_arm64.h"
#else
#error "the probe is for x86-64 and ARM64"
#endif

#define P(x) ((long)(uintptr_t)(x))

enum { EPERM = 1, ENOSYS = 38 };
enum { SIGKILL = 9, SIGSEGV = 11, SIGSTOP = 19, SIGURG = 23, SIG_LAST = 64, SIG_REALTIME = 34 };
enum { SA_SIGINFO = 4, SA_ONSTACK = 0x08000000, SA_RESTART = 0x10000000, SA_RESTORER = 0x04000000 };
enum { SI_TIMER = -2, SI_QUEUE = -1, POLL_IN = 1 };
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
	uint64_t value; /* POLL_IN: the sender's descriptor, in the lower half */
};

struct vec { uint64_t base, size; };

static inline long sigaction_raw(int sig, const struct action *set, struct action *old)
{
	return sys6(NR_rt_sigaction, sig, P(set), P(old), 8, 0, 0);
}

static inline uint64_t clock_time(long clock)
{
	uint64_t t[2] = {0, 0};
	sys3(NR_clock_gettime, clock, P(t), 0);
	return t[0] * 1000000000ull + t[1];
}

static inline uint64_t now(void) { return clock_time(1 /* CLOCK_MONOTONIC */); }

/* thread_time is the CPU time of the calling thread. */
static inline uint64_t thread_time(void) { return clock_time(3 /* CLOCK_THREAD_CPUTIME_ID */); }

static inline uint32_t own_tid(void) { return (uint32_t)sys3(NR_gettid, 0, 0, 0); }

#endif
