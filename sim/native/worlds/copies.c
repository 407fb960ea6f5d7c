/* capi/copies_amd64.c: two threads copy their own stacks into PLACES slots, while the sampler takes what is
 * there. The first thread runs on a fiber. */
#include "native.h"

#include "sampler.h"
#define SW_COPIES PLACES
#include "copies_amd64.c"

enum { WRITERS = 2, STACK_ROOM = 64 };
static uint64_t memory[PLACES][STACK_ROOM / 8];
static int got[WRITERS], full;

int sw_sampler_is_open(void) { return 1; }
void *sw_reserve(size_t bytes) { return (void)bytes, (void *)0; }
const int sw_no_memory = 1;
uint64_t sw_thread_self(void) { return (uint64_t)sim_me(); }

void sw_own_stack(uint64_t tid, uint64_t *thread_id, uint64_t *low, uint64_t *high)
{
	*thread_id = 100 + tid;
	*low = 1;
	*high = tid ? UINT64_MAX : 2;
}

/* The bytes that the sampler reads as the stack: the thread's number. */
uint64_t sw_copy_own(void *to, uint64_t from, uint64_t len, int sure)
{
	(void)from, (void)len;
	sim_check(sure == (sim_me() != 0), "the stack of a fiber is copied without checks");
	*(uint64_t *)to = (uint64_t)sim_me();
	return 8;
}

int world_threads(void) { return WRITERS + 1; }

UNSEEN void world_reset(void)
{
	for (int i = 0; i < PLACES; i++) {
		copies[i] = (struct sw_copied){.stack = (uint8_t *)memory[i]};
		memory[i][0] = 99;
	}
	stack_room = STACK_ROOM;
	dropped = turn = 0;
	got[0] = got[1] = full = 0;
	sim_watch(copies, sizeof copies);
	sim_watch(memory, sizeof memory);
	sim_watch(&dropped, sizeof dropped);
	sim_watch(&turn, sizeof turn);
}

static void take(int i)
{
	struct sw_copied *c = sw_copy_take(i);
	if (!c)
		return;
	uint64_t tid = c->tid, stack = *(uint64_t *)c->stack;
	sim_check(tid < WRITERS && c->tag == tid && c->thread_id == 100 + tid && stack == tid, "a copy is not whole");
	sim_check(!got[tid]++, "a copy is taken twice");
	sw_copy_done(c);
}

void world_thread(int i)
{
	if (i == WRITERS)
		for (int k = 0; k < PLACES; k++)
			take(k);
	else if (seedwalk_sampler_copy((uint64_t)i) == SEEDWALK_FULL)
		__atomic_fetch_add(&full, 1, __ATOMIC_SEQ_CST);
}

UNSEEN void world_end(void)
{
	for (int k = 0; k < PLACES; k++)
		take(k);
	sim_check((uint64_t)full == sw_copies_dropped(), "a copy without room is not counted");
	sim_check(got[0] + got[1] + full == WRITERS, "a copy is lost");
	sim_outcome(full ? "one dropped" : "both");
}
