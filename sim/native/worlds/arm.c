/* sample/probe/src/handler.c: the tool requests that a thread makes its timer, and the thread takes the
 * signal late. Meanwhile the tool dies (ENDS 0) or ends the recording (ENDS 1).
 * ANY 1: the end may run on any thread that takes a signal. */
#ifndef ANY
#define ANY 0
#endif
#include "world.h"

#include "handler.c"
#include "handler.h"

static uint32_t put_back;

void sw_put_back(struct sw_header *h)
{
	sim_check(!put_back++, "everything is put back twice");
	__atomic_store_n(&h->left, SW_LEFT, __ATOMIC_RELEASE);
}

int world_threads(void) { return 2; }

UNSEEN void world_reset(void)
{
	struct sw_header *h = recording();
	put_back = 0;
	h->stale = 1;
	h->ending = ANY;
	for (uint32_t i = 0; i < 2; i++)
		slots(h)[i].tid = 1000 + i;
	slots(h)[0].op = SW_OP_ARM;
	slots(h)[0].ask = 1;
	slots(h)[1].op = SW_OP_LEAVE;
	slots(h)[1].ask = ENDS;
}

void world_thread(int i)
{
	struct sw_header *h = sw_shared;
	if (i == 0 || ENDS) {
		take_signal((struct info){.code = SI_QUEUE}, i, TAG);
		return;
	}
	arm(h, slots(h) + i);
	sim_advance(2000);
	take_signal((struct info){.code = SI_TIMER}, i, TAG);
}

UNSEEN void world_end(void)
{
	int left = 0;
	for (int k = 0; k < sim_made; k++)
		left += sim_timers[k];
	sim_check(!left, "a timer is left, which no thread ends");
	sim_check(!sw_shared->timers, "timers are counted that are gone");
	sim_outcome(sim_made == 2 ? "two timers" : sim_made ? "one timer" : "no timer");
}
