/* profiler/host/events.c: two threads report events to the sampler through a ring of two cells.
 * UNLOAD 1: one of them unloads a module, while the sampler resolves names. */
#ifndef UNLOAD
#define UNLOAD 0
#endif
#include "native.h"

#include "platform.h"
#define SW_EVENTS 2
#include "events.c"

enum { WRITERS = 2, READS = 2, EVENTS = UNLOAD ? EACH : WRITERS * EACH };
static int got[EVENTS + 1], unloads_read;
static uint64_t dropped;
static uint32_t unloaded;

static int is_over(void *a) { return (void)a, !resolving; }
int sw_wait_flag(int *flag, int value, unsigned ms)
{
	(void)value, (void)ms;
	while (__atomic_load_n(flag, __ATOMIC_SEQ_CST))
		sim_wait(flag, sizeof *flag, "wait for the names", is_over, 0);
	return 1;
}

int world_threads(void) { return WRITERS + 1; }

UNSEEN void world_reset(void)
{
	sim_watch(cells, sizeof cells);
	sim_watch(&head, sizeof head);
	sim_watch(&lost, sizeof lost);
	sim_watch(&resolving, sizeof resolving);
	sim_watch(&unloading, sizeof unloading);
	sim_watch(&unloaded, sizeof unloaded);
	resolving = 0;
	unloaded = 0;
	unloading = unloads_read = 0;
	for (int i = 0; i < SW_EVENTS; i++)
		cells[i].turn = cells[i].event.kind = cells[i].event.a = 0;
	head = tail = lost = dropped = 0;
	for (int i = 0; i <= EVENTS; i++)
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
	if (e.kind == SW_EVENT_MODULE_UNLOAD)
		return ++unloads_read;
	sim_check(e.kind == SW_EVENT_JIT && e.a >= 1 && e.a <= EVENTS, "an event is not whole");
	sim_check(!got[e.a]++, "an event is read twice");
	return 1;
}

/* resolve is Agent.pin: it reads the events after it has announced itself. */
UNSEEN static void resolve(void)
{
	sw_resolve_enter();
	while (take())
		;
	if (!unloads_read)
		sim_check(!sim_load32(&unloaded), "a module is unloaded while its methods are named");
	sw_resolve_leave();
}

void world_thread(int i)
{
	if (UNLOAD && i == WRITERS) {
		resolve();
	} else if (UNLOAD && i) {
		sw_unload();
		sim_store32(&unloaded, 1);
	} else if (i < WRITERS)
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
	for (int i = 1; i <= EVENTS; i++)
		sum += (uint64_t)got[i];
	sim_check(sum + dropped == EVENTS, "an event is lost and not counted");
	sim_outcome(dropped ? "some dropped" : "all read");
}
