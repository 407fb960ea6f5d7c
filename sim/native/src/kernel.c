/* The simulated kernel: timers, a clock, thread ids, copies. It is compiled without
 * instrumentation and says itself what it reads and writes. */
#include "native.h"

#include <string.h>
#include <sys/syscall.h>

#ifdef SYS_open
enum { OPEN = SYS_open };
#else
enum { OPEN = SYS_openat };
#endif

enum { BEGIN = 1000 };
static uint64_t clock_now;
static uint32_t random_now;
int sim_timers[SIM_TIMERS], sim_made, sim_unset;
struct sim_action sim_actions[SIM_SIGNALS];

void sim_kernel_reset(void)
{
	sim_made = sim_unset = 0;
	clock_now = BEGIN;
	random_now = 0;
	sim_watch(&clock_now, sizeof clock_now);
	memset(sim_timers, 0, sizeof sim_timers);
	sim_watch(&sim_made, sizeof sim_made);
	memset(sim_actions, 0, sizeof sim_actions);
	sim_watch(sim_actions, sizeof sim_actions);
}

void sim_advance(uint64_t time)
{
	sim_syscall(&clock_now, SIM_WRITE, "time passes");
	clock_now = time;
}

void sim_copy(void *to, uint64_t from, uint64_t n)
{
	if (!n)
		return;
	sim_range((void *)from, (uint32_t)n, SIM_READ);
	sim_range(to, (uint32_t)n, SIM_WRITE);
	memcpy(to, (void *)from, n);
}

static long create(int32_t *id)
{
	sim_syscall(&sim_made, SIM_BOTH, "timer_create");
	if (sim_made == SIM_TIMERS)
		return -11;
	*id = sim_made++;
	sim_timers[*id] = 1;
	return 0;
}

static long end(long id)
{
	sim_syscall(&sim_made, SIM_BOTH, "timer_delete");
	if (id < 0 || id >= sim_made || !sim_timers[id]) {
		sim_check(0, "a timer is deleted that does not exist");
		return -22;
	}
	sim_timers[id] = 0;
	return 0;
}

static long action(long signal, const struct sim_action *set, struct sim_action *old)
{
	struct sim_action *a = &sim_actions[signal];
	sim_syscall(a, set ? SIM_BOTH : SIM_READ, "rt_sigaction");
	if (old)
		*old = *a;
	if (set)
		*a = *set;
	return 0;
}

long sim_sys6(long n, long a, long b, long c, long d, long e, long f)
{
	(void)e, (void)f;
	switch (n) {
	case OPEN:
		return -2;
	case SYS_mmap:
		sim_pages((void *)a, (uint32_t)b);
		return a;
	case SYS_getrandom:
		*(uint32_t *)a = ++random_now;
		return b;
	case SYS_rt_sigaction:
		return action(a, (const struct sim_action *)b, (struct sim_action *)c);
	case SYS_getpid:
		return 42;
	case SYS_gettid:
		return 1000 + sim_me();
	case SYS_clock_gettime:
		sim_syscall(&clock_now, SIM_READ, "clock_gettime");
		((uint64_t *)b)[0] = 0;
		((uint64_t *)b)[1] = clock_now;
		return 0;
	case SYS_timer_create:
		return create((int32_t *)c);
	case SYS_timer_settime:
		return sim_unset ? -22 : 0;
	case SYS_timer_delete:
		return end(a);
	case SYS_process_vm_writev:
		return -38; /* ENOSYS */
	case SYS_process_vm_readv:
		sim_copy((void *)((uint64_t *)b)[0], ((uint64_t *)d)[0], ((uint64_t *)d)[1]);
		return (long)((uint64_t *)d)[1];
	}
	return 0;
}
