/* profiler/host/threads.c: a sampler walks a thread if sw_claim lets it, while that thread ends
 * and another begins. NEXT_ID and NEXT_TID are the new thread's numbers. The runtime may reuse the
 * id (1), and the system the tid (11).
 * WINDOW 1: the sampler opens a window instead, as on Linux.
 * MOVES 1: the managed thread does not end, but continues in another system thread.
 * COPY 1: the sampler copies the table of threads, while two more threads begin. */
#ifndef WINDOW
#define WINDOW 0
#endif
#ifndef MOVES
#define MOVES 0
#endif
#ifndef COPY
#define COPY 0
#endif
#include "native.h"

#include "threads.c"

static uint32_t gone;

int world_threads(void) { return 3; }

static int walk_over(void *id) { return claimed != (uint64_t)id; }
static int window_over(void *a) { return (void)a, !window_open; }
void sw_wait_while(uint64_t *word, uint64_t value) { sim_wait(word, 8, "wait for the walk", walk_over, (void *)value); }
void sw_wake(uint64_t *word) { (void)word; }
void sw_sleep_us(unsigned us) { (void)us; sim_wait(&window_open, 4, "wait for the window", window_over, 0); }
int sw_sampler_gone(void) { return 0; }
uint64_t sw_thread_bind(struct sw_thread *t, uint32_t os_thread) { return t->handle = os_thread; }
void sw_thread_unbind(struct sw_thread *t) { t->handle = 0; }
int sw_utf8(const uint16_t *in, uint32_t units, char *out, int room) { (void)in, (void)units, (void)room; *out = 'n'; return 0; }

static void begin(uint64_t id, uint32_t tid)
{
	sw_thread_created(id);
	sw_thread_assigned(id, tid);
}

UNSEEN void world_reset(void)
{
	enum { ENTRIES = 3 };
	sim_watch(threads, sizeof threads[0] * ENTRIES);
	sim_watch(&used, sizeof used);
	sim_watch(&window_open, sizeof window_open);
	sim_watch(&claimed, sizeof claimed);
	sim_watch(&gone, sizeof gone);
	memset(threads, 0, sizeof threads[0] * ENTRIES);
	used = window_open = 0;
	claimed = gone = 0;
	begin(1, 11);
	sw_thread_renamed(1, 0, 0);
}

UNSEEN static void walk(void)
{
	if (WINDOW)
		sw_window_enter();
	int walks = WINDOW ? sw_thread_alive(1, 11) : sw_claim(1, 11);
	if (walks) {
		sim_range(&gone, sizeof gone, SIM_READ);
		struct sw_thread *t = sw_thread_of(1);
		if (t)
			sim_range(&t->handle, sizeof t->handle, SIM_READ);
		uint64_t handle = t ? t->handle : 0;
		sim_check(!gone && handle, "DoStackSnapshot of a thread that is gone: the CLR ends the process with 8013135e");
		sim_check(!handle || handle == 11, "another thread is stopped");
	}
	if (WINDOW)
		sw_window_leave();
	else if (walks)
		sw_release();
	sim_outcome(walks ? "walked" : "refused");
}

UNSEEN static int copy(void)
{
	struct sw_thread out[3];
	int n = sw_threads_copy(out, 3);
	for (int i = 0; i < n; i++)
		sim_check(out[i].handle == out[i].tid, "a thread is listed before its stack is known");
	return n;
}

UNSEEN static void destroy(void)
{
	sw_thread_destroyed(1);
	sim_range(&gone, sizeof gone, SIM_WRITE);
	gone = 1;
	if (NEXT_ID == 1) /* the id is an address: it is free only now */
		begin(NEXT_ID, NEXT_TID);
}

void world_thread(int i)
{
	if (COPY && i)
		begin((uint64_t)(i + 1), (uint32_t)(i + 11));
	else if (COPY)
		sim_outcome((const char *[]){"", "one", "two", "three"}[copy()]);
	else if (i == 0)
		walk();
	else if (i == 1 && MOVES)
		sw_thread_assigned(1, NEXT_TID);
	else if (i == 1)
		destroy();
	else if (NEXT_ID != 1)
		begin(NEXT_ID, NEXT_TID);
}

UNSEEN void world_end(void)
{
	const struct sw_thread *t = sw_thread_of(NEXT_ID);
	sim_check(!COPY || copy() == 3, "a thread is not listed");
	sim_check(t && t->tid == NEXT_TID && t->handle == NEXT_TID, "a thread has lost its handle");
	sim_check(MOVES || !t || !t->name[0], "a thread has the name of the one before");
}
