/* A bounded lock-free ring from application threads to the sampler: many writers, one reader. Each cell
 * has a turn: even means free for the writer of that lap, odd means filled. When the ring is full, an
 * event is dropped and counted, and the sampler reads everything again. */
#include "platform.h"

static struct {
	uint64_t turn;
	struct sw_event event;
} cells[SW_EVENTS];
static uint64_t head, tail, lost;
static int resolving, unloading;

void sw_event_push(uint64_t kind, uint64_t a)
{
	uint64_t at = __atomic_load_n(&head, __ATOMIC_RELAXED);
	for (;;) {
		uint64_t lap = 2 * (at / SW_EVENTS);
		uint64_t turn = __atomic_load_n(&cells[at % SW_EVENTS].turn, __ATOMIC_ACQUIRE);
		if (turn < lap) {
			__atomic_add_fetch(&lost, 1, __ATOMIC_RELAXED);
			return;
		}
		if (turn == lap && __atomic_compare_exchange_n(&head, &at, at + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			cells[at % SW_EVENTS].event = (struct sw_event){kind, a};
			__atomic_store_n(&cells[at % SW_EVENTS].turn, lap + 1, __ATOMIC_RELEASE);
			return;
		}
		if (turn != lap)
			at = __atomic_load_n(&head, __ATOMIC_RELAXED);
	}
}

int sw_event_next(struct sw_event *out)
{
	if (__atomic_exchange_n(&unloading, 0, __ATOMIC_SEQ_CST)) {
		*out = (struct sw_event){SW_EVENT_MODULE_UNLOAD, 0};
		return 1;
	}
	uint64_t dropped = __atomic_exchange_n(&lost, 0, __ATOMIC_RELAXED);
	if (dropped) {
		*out = (struct sw_event){SW_EVENT_LOST, dropped};
		return 1;
	}
	uint64_t lap = 2 * (tail / SW_EVENTS);
	if (__atomic_load_n(&cells[tail % SW_EVENTS].turn, __ATOMIC_ACQUIRE) != lap + 1)
		return 0;
	*out = cells[tail % SW_EVENTS].event;
	__atomic_store_n(&cells[tail % SW_EVENTS].turn, lap + 2, __ATOMIC_RELEASE);
	tail++;
	return 1;
}

/* While the sampler resolves the names of new methods, their module must not be unloaded, because its
 * FunctionIDs would dangle. The sampler sets resolving and then reads unloading; an unloading thread sets
 * unloading and then reads resolving. These four operations are sequentially consistent, so at least one side
 * sees the other. An unload is no event of the ring, where another writer's event before it may be
 * unfinished. The wait is bounded, so that it cannot cause a hang. */
void sw_resolve_enter(void) { __atomic_store_n(&resolving, 1, __ATOMIC_SEQ_CST); }
void sw_resolve_leave(void) { __atomic_store_n(&resolving, 0, __ATOMIC_SEQ_CST); }

enum { LONGEST_RESOLVE_MS = 1000 };

void sw_unload(void)
{
	__atomic_store_n(&unloading, 1, __ATOMIC_SEQ_CST);
	sw_wait_flag(&resolving, 0, LONGEST_RESOLVE_MS);
}
