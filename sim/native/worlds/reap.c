/* sample/probe/src/handler.c: threads ended and left timers. The tool lists their slots, and other threads
 * end the timers in their handlers. The tool gives slot 0 to the next thread, which makes its timer.
 * REAPERS: number of threads that end timers. CALLS: handlers of each. DEAD: number of ended threads. */
#ifndef LOOKS
#define LOOKS 1 /* the tool checks whether the list still names a slot */
#endif
#ifndef LATE
#define LATE 1 /* the tool announces an entry after it has written the entry */
#endif
#include "world.h"

#include "handler.c"
#include "handler.h"

static uint32_t given; /* 1: slot 0 has its next thread, 2: it got none */

void sw_put_back(struct sw_header *h) { (void)h; }

int world_threads(void) { return 2 + REAPERS; }

UNSEEN void world_reset(void)
{
	struct sw_header *h = recording();
	sim_watch(&given, sizeof given);
	given = 0;
	for (uint32_t i = 0; i < DEAD; i++) {
		slots(h)[i].tid = 1001 + i;
		slots(h)[i].timer = i + 1;
		sim_timers[i] = 1;
	}
	h->timers = DEAD;
	sim_made = DEAD;
}

/* is_listed is File.listed of file_linux.go. */
static int is_listed(struct sw_header *h, uint32_t slot)
{
	for (uint32_t k = 0; LOOKS && k < DEAD; k++)
		if ((sim_load32(&h->reap[k]) & ~SW_REAPED) == slot + 1)
			return 1;
	return 0;
}

/* is_free is what File.Reap asks of a slot. */
static int is_free(struct sw_header *h, uint32_t slot)
{
	return !sim_load32(&slots(h)[slot].timer) && !is_listed(h, slot);
}

/* list is the other half of File.Reap: it offers n dead slots, from 0 on. */
static void list(struct sw_header *h, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		if (sim_load32(&h->reap[k]))
			continue;
		if (!LATE)
			sim_store32(&h->reaping, 1);
		sim_store32(&h->reap[k], k + 1);
		if (LATE)
			sim_store32(&h->reaping, 1);
	}
}

static int is_settled(void *word) { return *(uint32_t *)word != 0; }

void world_thread(int i)
{
	struct sw_header *h = sw_shared;
	if (i == 0) {
		list(h, 1);
		if (!is_free(h, 0)) {
			list(h, DEAD); /* meanwhile another thread has ended */
			sim_store32(&given, is_free(h, 0) ? 1 : 2);
		} else {
			sim_store32(&given, 1);
		}
	} else if (i <= REAPERS) {
		for (int k = 0; k < CALLS; k++)
			reap(h);
	} else {
		sim_wait(&given, sizeof given, "wait for a slot", is_settled, &given);
		if (sim_load32(&given) == 1) {
			sim_store32(&slots(h)->tid, 1009);
			arm(h, slots(h));
		}
	}
}

UNSEEN void world_end(void)
{
	struct sw_header *h = sw_shared;
	uint32_t live = 0, set = 0, listed = 0;
	for (int k = 0; k < sim_made; k++)
		live += (uint32_t)sim_timers[k];
	for (uint32_t k = 0; k < DEAD; k++) {
		set += slots(h)[k].timer != 0;
		listed += h->reap[k] != 0;
	}
	sim_check(live == h->timers && live == set, "a timer is left, or one that is gone is counted");
	sim_check(!listed || h->reaping, "an entry of the list is forgotten");
	sim_check(given != 1 || slots(h)->timer, "the timer of a slot's next thread is ended");
	sim_outcome(given == 1 ? "given" : "not yet");
}
