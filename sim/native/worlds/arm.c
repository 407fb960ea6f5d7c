/* sample/probe/src/handler.c: a thread takes the signal late that asks it to make its timer,
 * while the tool dies (ENDS 0) or has the recording end (ENDS 1): on any thread that takes a signal (ANY 1). */
#ifndef ANY
#define ANY 0
#endif
#include "world.h"

#include "handler.c"

static char file[SW_BEFORE_RING + 2 * SW_RING_SIZE] __attribute__((aligned(4096)));
static uint32_t put_back;

void sw_put_back(struct sw_header *h)
{
	sim_check(!put_back++, "everything is put back twice");
	__atomic_store_n(&h->left, SW_LEFT, __ATOMIC_RELEASE);
}
uint64_t sw_current(void) { return 0; }
int sw_answer(struct sw_header *h, const struct info *si, uint32_t tid) { return (void)h, (void)si, (void)tid, 0; }
void sw_objects(struct sw_header *h, const struct sw_slot *s, const uint64_t *regs, const uint64_t *stack, uint64_t size, void *out) { (void)h, (void)s, (void)regs, (void)stack, (void)size, (void)out; }

int world_threads(void) { return 2; }

UNSEEN void world_reset(void)
{
	struct sw_header *h = sw_shared = (struct sw_header *)file;
	sim_watch(file, sizeof file);
	memset(file, 0, sizeof file);
	sim_kernel_reset();
	put_back = 0;
	h->tag = 0x5eed;
	h->timer_signal = SIGURG;
	h->period = 1000000;
	h->stale = 1;
	h->heartbeat = 1000;
	h->ending = ANY;
	for (uint32_t i = 0; i < 2; i++)
		slots(h)[i].tid = 1000 + i;
	slots(h)[0].op = SW_OP_ARM;
	slots(h)[0].ask = 1;
	slots(h)[1].op = SW_OP_LEAVE;
	slots(h)[1].ask = ENDS;
}

UNSEEN static void deliver(int i, int code)
{
	struct info si = {.code = code, .value = (uint64_t)sw_shared->tag << 32 | (uint64_t)i};
	struct frame uc;
	memset(&uc, 0, sizeof uc);
	sw_handler(SIGURG, &si, &uc);
}

void world_thread(int i)
{
	struct sw_header *h = sw_shared;
	if (i == 0 || ENDS) {
		deliver(i, SI_QUEUE);
		return;
	}
	arm(h, slots(h) + i);
	sim_advance(2000);
	deliver(i, SI_TIMER);
}

UNSEEN void world_end(void)
{
	int left = 0;
	for (int k = 0; k < sim_made; k++)
		left += sim_timers[k];
	sim_check(!left, "a timer is left, and nobody who would end it");
	sim_check(!sw_shared->timers, "timers are counted that are gone");
	sim_outcome(sim_made == 2 ? "two timers" : sim_made ? "one timer" : "no timer");
}
