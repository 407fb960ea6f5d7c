/* sample/probe/src/handler.c: one thread takes signals of every kind, one after the other. */
#include "world.h"

#include "handler.c"
#include "handler.h"

UNSEEN void sw_put_back(struct sw_header *h)
{
	sim_check(!h->timers && !sim_timers[sim_made - 1], "the process is restored before its timers end");
	h->left = SW_LEFT;
}

int world_threads(void) { return 1; }

UNSEEN void world_reset(void) { add(slots(recording()), 1000); }

/* last returns the newest record. */
UNSEEN static const struct sw_record *last(void)
{
	struct sw_header *h = sw_shared;
	const struct sw_record *r = 0;
	for (uint64_t at = 0; at < h->head; at += r->size)
		r = (const struct sw_record *)(ring(h) + at);
	return r;
}

void world_thread(int i)
{
	struct sw_header *h = sw_shared;
	struct sw_slot *s = slots(h);
	(void)i;
	s->op = SW_OP_ARM;
	s->ask = 1;
	take_signal((struct info){.code = SI_QUEUE}, 0, TAG);
	sim_check(s->timer == 1 && last()->why == SW_ARMED && last()->weight == 0, "a thread that makes its timer counts as CPU time");
	s->ask = 2;
	take_signal((struct info){.code = SI_QUEUE}, 0, TAG);
	sim_check(s->timer == 1 && sim_made == 1 && h->timers == 1, "a thread has two timers");
	take_signal((struct info){.code = SI_TIMER, .overrun = 3}, 0, TAG);
	sim_check(last()->why == SW_TIMER && last()->weight == 4, "the overrun of a timer is lost");
	sim_check(last()->stack_size == s->high - last()->stack && !(last()->flags & SW_FOREIGN), "a thread's own stack is not whole");
	h->head = 0;
	s->op = SW_OP_SAMPLE;
	s->ask = 3;
	take_signal((struct info){.code = SI_TIMER, .overrun = 1}, 0, TAG);
	const struct sw_record *tick = (const struct sw_record *)ring(h);
	sim_check(tick->why == SW_TIMER && tick->weight == 2, "the CPU time of a tick that carries a request is lost");
	sim_check(last()->why == SW_ASKED && s->answered == 3, "a request is lost if a tick carries it");
	h->head = 0;
	s->high -= 64; /* the thread is elsewhere: this ring has no room for as much as is tried of such a stack */
	take_signal((struct info){.code = SI_TIMER}, 0, TAG);
	sim_check(!h->head && h->dropped == 1, "a foreign stack is taken for the thread's own");
	s->high += 64;

	sim_timers[sim_made++] = 1;
	take_signal((struct info){.code = SI_TIMER, .timer = 1}, 0, 0xdead);
	sim_check(sim_timers[0] && !sim_timers[1], "a timer of an earlier recording stays");

	s->tid = 1007;
	uint64_t signals = h->signals;
	take_signal((struct info){.code = SI_QUEUE}, 0, TAG);
	sim_check(h->signals == signals, "a thread answers for another");
	s->tid = 1000;

	sim_unset = 1;
	slots(h)[1].tid = 1001;
	arm(h, slots(h) + 1);
	sim_check(!slots(h)[1].timer && slots(h)[1].error == 22 && !sim_timers[sim_made - 1], "a timer that cannot be set stays");
	sim_unset = 0;

	uint64_t head = h->head;
	sim_advance(2 * h->stale);
	take_signal((struct info){.code = SI_TIMER}, 0, TAG);
	sim_check(h->head == head && !s->timer && h->stopped == 1, "a tool that is gone is sent samples");
	signals = h->signals;

	h->heartbeat = 2 * h->stale;
	arm(h, s);
	s->op = SW_OP_LEAVE;
	s->ask = 4;
	take_signal((struct info){.code = SI_QUEUE}, 0, TAG);
	sim_check(h->left == SW_LEFT && s->answered == 4, "the recording does not end");
	signals = h->signals;

	h->ending = 1;
	take_signal((struct info){.code = SI_QUEUE}, 0, TAG);
	sim_check(h->signals == signals, "a recording that has ended is served");

	inside = 1;
	sw_forked();
	sim_check(!sw_shared && !inside, "a child goes on with its parent's recording");
}

void world_end(void) {}
