/* profiler/host/capture_linux.c: the sampler requests a copy from two threads in turn, through the same
 * slot. Each may take its signal at any time, also after its request was withdrawn. If LATE, a thread's
 * signals can be read. Thread 2 blocks its signal for a while: after the suspension, it runs on before it
 * takes the signal. */
#define _GNU_SOURCE
#include "native.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static uint64_t sent[3]; /* the value of the signal that thread i has pending, + 1 */

static long world_syscall(long n, ...);
static int world_open(const char *path, int flags);
static long world_read(int thread, char *to, size_t n);
static int world_close(int thread) { return (void)thread, 0; }
#define SW_WAITS 2
#define syscall world_syscall
#define open world_open
#define read world_read
#define close world_close
#include "capture_linux.c"
#undef syscall
#undef open
#undef read
#undef close

enum { TID = 100, SP = 5, BLOCKS = 2, LATER = 10 };
#define NEVER (~0ull - 1)
static uint64_t stacks[3][32];
static int waits_now; /* of one call of settle */
static int taken[3], resumed[3]; /* they change in the steps that change sent */

static int world_open(const char *path, int flags)
{
	(void)flags;
	return LATE ? atoi(path + strlen("/proc/self/task/")) - TID : -1;
}

UNSEEN static long world_read(int i, char *to, size_t n)
{
	sim_syscall(&sent[i], SIM_READ, "read of the signals");
	uint64_t ours = 1ull << (sw_signal_number() - 1);
	return snprintf(to, n, "SigPnd:\t%016llx\nSigBlk:\t%016llx\n", (unsigned long long)(sent[i] && !taken[i] ? ours : 0), (unsigned long long)(i == BLOCKS ? ours : 0));
}

static long world_syscall(long n, ...)
{
	va_list a;
	va_start(a, n);
	long one = va_arg(a, long), two = va_arg(a, long);
	long r = 0;
	if (n == SYS_rt_tgsigqueueinfo) {
		va_arg(a, long);
		siginfo_t *info = va_arg(a, siginfo_t *);
		sim_store64(&sent[two - TID], (uint64_t)info->si_value.sival_ptr + 1);
	} else if (n == SYS_futex && two == FUTEX_WAIT_PRIVATE) {
		sim_syscall((void *)one, SIM_READ, "futex: the time is over");
		sim_check(!waits_now++, "a wait goes on after its time");
		errno = ETIMEDOUT;
		r = -1;
	} else if (n == SYS_process_vm_readv) {
		struct iovec *to = (void *)two;
		r = (long)to->iov_len;
	}
	va_end(a);
	return r;
}

int world_threads(void) { return 3; }

UNSEEN void world_reset(void)
{
	sim_watch(&slots[0], sizeof slots[0]);
	sim_watch(sent, sizeof sent);
	memset(&slots[0], 0, sizeof slots[0]);
	memset(sent, 0, sizeof sent);
	memset(taken, 0, sizeof taken);
	memset(resumed, 0, sizeof resumed);
	memset(silent, 0, sizeof silent);
	serials = 0;
	stack_room = sizeof stacks[0];
	slots[0].stack = (uint8_t *)stacks[0];
}

static int asked(void *word) { return *(uint64_t *)word != 0; }

UNSEEN static void answer(int i)
{
	sim_wait(&sent[i], 8, "wait for the signal", asked, &sent[i]);
	int at = i + (i == BLOCKS && resumed[i] ? LATER : 0);
	taken[i] = 1;
	uint64_t value = sim_load64(&sent[i]) - 1;
	if (value == NEVER)
		return;
	sim_check((int32_t)((uint32_t)(value >> 32) - (sim_load32(&slots[0].word) >> STATES)) <= 0, "a signal comes before its request, or finds another");
	ucontext_t u;
	siginfo_t info;
	memset(&u, 0, sizeof u);
	memset(&info, 0, sizeof info);
	for (int r = 0; r < NGREG; r++)
		u.uc_mcontext.gregs[r] = at;
	u.uc_mcontext.gregs[REG_RSP] = (greg_t)&stacks[i][24];
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_value.sival_ptr = (void *)value;
	on_signal(sw_signal_number(), &info, &u);
}

UNSEEN static int ask(int i)
{
	sw_ask(0, (uint64_t)i, (uint64_t)(TID + i), (uint64_t)&stacks[i][32]);
	waits_now = 0;
	int state = sw_await(0, 1000);
	waits_now = 0;
	sim_check(state != SW_ASKED || slots[0].busy || state_of(slots[0].word) == SW_IDLE, "a copy under way is dropped");
	if (LATE) {
		sim_syscall(&sent[i], SIM_WRITE, "the suspension ends");
		resumed[i] = 1;
	}
	if (state == SW_CAPTURING)
		state = sw_await_late(0, 1000);
	if (!sent[i]) /* the slot is busy: the thread was not asked */
		sim_store64(&sent[i], NEVER + 1);
	if (state != SW_CAPTURED)
		return 0;
	sim_range(slots[0].regs, sizeof slots[0].regs, SIM_READ);
	for (int r = 0; r < 17; r++)
		sim_check(r == SP || slots[0].regs[r] == (uint64_t)i, "the registers are another thread's, or not whole");
	sim_check(slots[0].stack_addr == (uint64_t)&stacks[i][24] - 128, "the stack is another thread's");
	sim_check(!slots[0].foreign && slots[0].stack_len == 8 * sizeof *stacks[i] + 128, "the stack's end is another thread's");
	return 1;
}

void world_thread(int i)
{
	if (i) {
		answer(i);
		return;
	}
	int first = ask(1), second = ask(2);
	sim_outcome(first && second ? "both" : first ? "first" : second ? "second" : "none");
}

UNSEEN void world_end(void) {}
