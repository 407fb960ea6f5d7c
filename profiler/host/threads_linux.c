/* What a Linux thread knows about itself, and its CPU time. */
#define _GNU_SOURCE
#include "shim.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
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

enum { ALTERNATE = 256 << 10, PAGE = 4096 };

/* Gives a thread an alternate stack with room for several handlers. The CLR's alternate stacks have 16 KiB.
 * That is too small if a library such as Go's runtime moves all handlers to them. Our handler can then
 * interrupt a handler of the CLR that waits for a collection on the same stack. */
static void more_room(struct sw_thread *t)
{
	stack_t now, ours = {.ss_size = ALTERNATE};
	if (sigaltstack(NULL, &now) || now.ss_flags & (SS_DISABLE | SS_ONSTACK) || now.ss_size >= ALTERNATE)
		return;
	char *room = mmap(NULL, PAGE + ALTERNATE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return;
	ours.ss_sp = room + PAGE; /* behind a guard page, like the CLR's: the CLR may unmap it */
	if (mprotect(ours.ss_sp, ALTERNATE, PROT_READ | PROT_WRITE) || sigaltstack(&ours, NULL)) {
		munmap(room, PAGE + ALTERNATE);
		return;
	}
	t->alternate = (uint64_t)ours.ss_sp;
	t->before = (uint64_t)now.ss_sp;
	t->before_size = now.ss_size;
}

/* On the thread itself, restores the CLR's alternate stack, which the CLR unmaps when the thread ends. On
 * another thread it does nothing. */
static void less_room(struct sw_thread *t)
{
	stack_t now, before = {.ss_sp = (void *)t->before, .ss_size = t->before_size};
	if (t->alternate && sigaltstack(NULL, &now) == 0 && (uint64_t)now.ss_sp == t->alternate && !(now.ss_flags & (SS_ONSTACK | SS_DISABLE)) &&
	    sigaltstack(&before, NULL) == 0)
		munmap((char *)t->alternate - PAGE, PAGE + ALTERNATE);
	t->alternate = 0;
}

/* Runs on the thread itself. os_thread is the CLR's name for it, which on Linux is not a kernel thread id. */
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
	more_room(t);
	return sw_thread_self();
}

void sw_thread_unbind(struct sw_thread *t) { less_room(t); }

/* CPU time of a thread; 0 if unknown. The clock's number is derived from the thread id as in Linux
 * include/linux/posix-timers.h. */
uint64_t sw_thread_cpu_ns(uint64_t tid)
{
	struct timespec t;
	clockid_t clock = (clockid_t)((~(uint32_t)tid << 3) | 6);
	return clock_gettime(clock, &t) == 0 ? (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec : 0;
}
