/* What a thread of Linux knows of itself, and its processor time. */
#define _GNU_SOURCE
#include "shim.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t sw_thread_self(void) { return (uint64_t)syscall(SYS_gettid); }

void sw_own_stack(uint64_t tid, uint64_t *thread_id, uint64_t *low, uint64_t *high)
{
	const struct sw_thread *t = sw_thread_by_tid(tid);
	*thread_id = t ? t->thread_id : 0;
	*low = t ? t->stack_low : 0;
	*high = t ? t->stack_high : 0;
}

/* Runs on the thread itself. os_thread is the CLR's word for it, which on Linux
 * is no kernel thread id. */
uint64_t sw_thread_bind(struct sw_thread *t, uint32_t os_thread)
{
	(void)os_thread;
	pthread_attr_t attr;
	if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		void *low;
		size_t size;
		if (pthread_attr_getstack(&attr, &low, &size) == 0) {
			t->stack_low = (uint64_t)low;
			t->stack_high = (uint64_t)low + size;
		}
		pthread_attr_destroy(&attr);
	}
	return sw_thread_self();
}

void sw_thread_unbind(struct sw_thread *t) { (void)t; }

/* Processor time of a thread; 0 if it cannot be had. The clock's number is made
 * from the thread id as in Linux include/linux/posix-timers.h. */
uint64_t sw_thread_cpu_ns(uint64_t tid)
{
	struct timespec t;
	clockid_t clock = (clockid_t)((~(uint32_t)tid << 3) | 6);
	return clock_gettime(clock, &t) == 0 ? (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec : 0;
}
