/* The managed threads, according to the CLR's callbacks.
 *
 * Writers are application threads, one per entry at a time (the CLR orders the created, assigned, and
 * destroyed callbacks of one thread); the reader is the sampler. An entry is published by writing
 * thread_id last, and has a tid only while a thread is bound to it. ThreadDestroyed waits while a window is
 * open: the CLR takes no reference for a walk, and a walk of a thread that is gone crashes the process. */
#include "platform.h"

#include <string.h>

#include "hooks.h"

static struct sw_thread threads[SW_THREADS];
static int used;         /* entries ever used */
static int window_open;  /* Linux: all threads are being sampled */
static uint64_t claimed; /* Windows: this thread is being sampled */

static struct sw_thread *find(uint64_t thread_id)
{
	int n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
	for (int i = 0; i < n && i < SW_THREADS; i++)
		if (__atomic_load_n(&threads[i].thread_id, __ATOMIC_ACQUIRE) == thread_id)
			return &threads[i];
	return NULL;
}

/* Claims a free entry: a new one, or that of a thread that has ended. */
static struct sw_thread *claim(uint64_t thread_id)
{
	for (int i = 0; i < SW_THREADS; i++) {
		uint64_t none = 0;
		if (!__atomic_compare_exchange_n(&threads[i].thread_id, &none, ~(uint64_t)0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		int n = __atomic_load_n(&used, __ATOMIC_RELAXED);
		while (n < i + 1 && !__atomic_compare_exchange_n(&used, &n, i + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			;
		struct sw_thread *t = &threads[i];
		t->stack_low = t->stack_high = t->handle = 0;
		__atomic_store_n(&t->dead, 0, __ATOMIC_RELEASE); /* a reader of this does not read the old tid */
		t->name[0] = 0;
		__atomic_store_n(&t->thread_id, thread_id, __ATOMIC_RELEASE);
		return t;
	}
	return NULL;
}

void sw_thread_created(uint64_t thread_id)
{
	if (!find(thread_id))
		claim(thread_id);
}

/* Waits until no walk of a thread is in progress and sw_claim will allow no other, so that its resources
 * may be freed. */
static void wait_for_sampler(uint64_t thread_id)
{
	while (__atomic_load_n(&claimed, __ATOMIC_SEQ_CST) == thread_id && !sw_sampler_gone())
		sw_wait_while(&claimed, thread_id);
}

/* Runs on the thread itself, which knows its kernel id and its stack. */
void sw_thread_assigned(uint64_t thread_id, uint32_t os_thread)
{
	struct sw_thread *t = find(thread_id);
	if (!t)
		t = claim(thread_id);
	if (!t)
		return;
	/* The CLR may move a managed thread to another system thread. */
	__atomic_store_n(&t->tid, 0, __ATOMIC_SEQ_CST);
	wait_for_sampler(thread_id);
	sw_thread_unbind(t);
	uint64_t tid = sw_thread_bind(t, os_thread);
	__atomic_store_n(&t->tid, tid, __ATOMIC_RELEASE);
}

void sw_thread_destroyed(uint64_t thread_id)
{
	struct sw_thread *t = find(thread_id);
	if (!t || sw_hook_unguarded(thread_id))
		return;
	__atomic_store_n(&t->dead, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&window_open, __ATOMIC_SEQ_CST))
		sw_sleep_us(100);
	wait_for_sampler(thread_id);
	__atomic_store_n(&t->tid, 0, __ATOMIC_RELEASE);
	sw_thread_unbind(t);
	__atomic_store_n(&t->thread_id, 0, __ATOMIC_RELEASE);
}

void sw_thread_renamed(uint64_t thread_id, uint32_t units, const uint16_t *name)
{
	struct sw_thread *t = find(thread_id);
	if (!t)
		t = claim(thread_id); /* on Windows the name is reported before the thread */
	if (!t)
		return;
	sw_utf8(name, units, t->name, sizeof t->name);
}

int sw_threads_copy(struct sw_thread *out, int room)
{
	int n = __atomic_load_n(&used, __ATOMIC_ACQUIRE), count = 0;
	for (int i = 0; i < n && count < room; i++) {
		if (__atomic_load_n(&threads[i].tid, __ATOMIC_ACQUIRE) == 0)
			continue;
		out[count] = threads[i];
		out[count].name[sizeof out->name - 1] = 0;
		count++;
	}
	return count;
}

/* A thread that is alive stays so between sw_window_enter and sw_window_leave. dead is read before tid,
 * because the entry may be reused for another thread between the two reads. Reuse clears dead, and the
 * entry has no tid until the new thread is bound. In the other order, the tid of a destroyed thread would
 * be combined with the state of its successor, whose thread_id may be the same. thread_id is read again at
 * the end: the system reuses its numbers too, and the successor may have the same tid. */
int sw_thread_alive(uint64_t thread_id, uint64_t tid)
{
	struct sw_thread *t = find(thread_id);
	return t && !__atomic_load_n(&t->dead, __ATOMIC_SEQ_CST) && __atomic_load_n(&t->tid, __ATOMIC_SEQ_CST) == tid &&
	       __atomic_load_n(&t->thread_id, __ATOMIC_SEQ_CST) == thread_id;
}

void sw_window_enter(void) { __atomic_store_n(&window_open, 1, __ATOMIC_SEQ_CST); }
void sw_window_leave(void) { __atomic_store_n(&window_open, 0, __ATOMIC_SEQ_CST); }

/* Makes the destruction of one thread wait until sw_release. 0: it has ended. Each side writes its own
 * flag before it reads the other's, so at least one of them sees the other. */
int sw_claim(uint64_t thread_id, uint64_t tid)
{
	__atomic_store_n(&claimed, thread_id, __ATOMIC_SEQ_CST);
	if (sw_thread_alive(thread_id, tid))
		return 1;
	sw_release();
	return 0;
}

void sw_release(void)
{
	__atomic_store_n(&claimed, 0, __ATOMIC_SEQ_CST);
	sw_wake(&claimed);
}

/* The entry of a claimed thread, or NULL. */
struct sw_thread *sw_thread_of(uint64_t thread_id) { return find(thread_id); }

struct sw_thread *sw_thread_by_tid(uint64_t tid)
{
	int n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
	for (int i = 0; i < n && i < SW_THREADS; i++)
		if (__atomic_load_n(&threads[i].tid, __ATOMIC_ACQUIRE) == tid)
			return &threads[i];
	return NULL;
}
