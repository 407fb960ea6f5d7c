/* profiler/host/events.c: two threads report events to the sampler through a ring of two cells. */
#include "native.h"

#include "platform.h"
#define SW_EVENTS 2
#include "events.c"

enum { WRITERS = 2, READS = 2 };
static int got[WRITERS * EACH + 1];
static uint64_t dropped;

int sw_wait_flag(int *flag, int value, unsigned ms) { return (void)flag, (void)value, (void)ms, 0; }

int world_threads(void) { return WRITERS + 1; }

UNSEEN void world_reset(void)
{
	sim_watch(cells, sizeof cells);
	sim_watch(&head, sizeof head);
	sim_watch(&lost, sizeof lost);
	for (int i = 0; i < SW_EVENTS; i++)
		cells[i].turn = cells[i].event.kind = cells[i].event.a = 0;
	head = tail = lost = dropped = 0;
	for (int i = 0; i <= WRITERS * EACH; i++)
		got[i] = 0;
}

UNSEEN static int take(void)
{
	struct sw_event e = {0, 0};
	if (!sw_event_next(&e))
		return 0;
	if (e.kind == SW_EVENT_LOST) {
		dropped += e.a;
		return 1;
	}
	sim_check(e.kind == SW_EVENT_JIT && e.a >= 1 && e.a <= WRITERS * EACH, "an event is not whole");
	sim_check(!got[e.a]++, "an event is read twice");
	return 1;
}

void world_thread(int i)
{
	if (i < WRITERS)
		for (int k = 0; k < EACH; k++)
			sw_event_push(SW_EVENT_JIT, (uint64_t)(i * EACH + k + 1));
	else
		for (int k = 0; k < READS; k++)
			take();
}

UNSEEN void world_end(void)
{
	uint64_t sum = 0;
	while (take())
		;
	for (int i = 1; i <= WRITERS * EACH; i++)
		sum += (uint64_t)got[i];
	sim_check(sum + dropped == WRITERS * EACH, "an event is lost and not counted");
	sim_outcome(dropped ? "some dropped" : "all read");
}
