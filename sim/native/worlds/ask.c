/* sample/probe/src/handler.c: the tool asks a thread for a sample and then for a timer, while the thread
 * takes the first signal. ONE 1: the tool asks for a timer only, and an event of the thread has the same
 * signal. */
#ifndef LATE
#define LATE 0 /* the tool writes what it asks for after the request */
#endif
#include "world.h"

#include "handler.c"
#include "handler.h"

static uint32_t sends; /* signals of the tool */

void sw_put_back(struct sw_header *h) { (void)h; }

int world_threads(void) { return 2; }

UNSEEN void world_reset(void)
{
	add(slots(recording()), 1001);
	sim_watch(&sends, sizeof sends);
	sends = 0;
}

/* ask is File.Ask of file_linux.go. */
static void ask(uint32_t op)
{
	struct sw_slot *s = slots(sw_shared);
	if (!LATE)
		sim_store32(&s->op, op);
	if (sim_load32(&s->ask) == sim_load32(&s->answered))
		sim_store32(&s->ask, sim_load32(&s->ask) + 1);
	if (LATE)
		sim_store32(&s->op, op);
	sim_store32(&sends, sim_load32(&sends) + 1);
}

/* look is Engine.lacksTimer: an answer without a timer is a refusal. */
static void look(const struct sw_slot *s)
{
	if (sim_load32(&s->ask) == sim_load32(&s->answered))
		sim_check(!sim_load32(&s->error) && sim_load32(&s->timer), "a request is answered early, or with another operation");
}

static int was_sent(void *n) { return *(uint32_t *)n != 0; }
static int both_sent(void *n) { return *(uint32_t *)n == 2; }

void world_thread(int i)
{
	if (i == 0) {
		if (!ONE)
			ask(SW_OP_SAMPLE);
		ask(SW_OP_ARM);
		if (ONE)
			look(slots(sw_shared));
		return;
	}
	if (ONE)
		take_signal((struct info){.code = POLL_IN}, 0, TAG); /* of an event: nothing orders it behind the request */
	/* one signal is pending at a time: the second is lost unless the first was taken */
	sim_wait(&sends, sizeof sends, "wait for a signal", was_sent, &sends);
	uint32_t taken = sim_load32(&sends);
	take_signal((struct info){.code = SI_QUEUE}, 0, TAG);
	if (taken == 1 && !ONE) {
		sim_wait(&sends, sizeof sends, "wait for a signal", both_sent, &sends);
		(void)sim_load32(&sends); /* the kernel orders what was written before a signal */
		take_signal((struct info){.code = SI_QUEUE}, 0, TAG);
	}
}

UNSEEN void world_end(void)
{
	struct sw_header *h = sw_shared;
	struct sw_slot *s = slots(h);
	int live = 0;
	for (int k = 0; k < sim_made; k++)
		live += sim_timers[k];
	sim_check(live == (int)h->timers && live == (s->timer != 0), "a timer is left, or one that is gone is counted");
	sim_check(s->answered == s->ask, "a request is never answered");
	sim_check(!ONE || s->timer, "a request is answered with another operation");
	sim_check(h->dropped == 0, "lost");
	sim_outcome(s->timer ? "armed" : "sampled");
}
