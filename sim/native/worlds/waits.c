/* sample/probe/src/events.c: a thread waits twice while the tool reads the open waits. The
 * reader is File.Waiting of sample/probe/events.go in C.
 * NO_STOP: an exception ended the first wait, so the runtime reports no stop for it.
 * OTHER: the second wait is of another thread, whose place is the same. The reader does not read the payload.
 * OWNER 0, SINCE 0: the reader does not check the owner or the time again. */
#ifndef OTHER
#define OTHER 0
#endif
#ifndef OWNER
#define OWNER 1
#endif
#ifndef SINCE
#define SINCE 1
#endif
#include "world.h"

#include "copy.c"
#include "events.c"

enum { TID = 1000, WORDS = sizeof(struct sw_open) / 8, FIRST = OTHER ? CONTENTION_START : WAIT_START };
struct sw_header *sw_shared;
static char file[SW_BEFORE_RING + SW_RING_SIZE] __attribute__((aligned(4096)));
static uint64_t payload[2][5] = {{1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}};

void sw_copy(void *to, uint64_t from, uint64_t n) { sim_copy(to, from, n); }
uint64_t sw_checked(void *to, uint64_t from, uint64_t n) { return (void)to, (void)from, n; }
int sw_is_ours(void *p) { return (void)p, 1; }
int sw_is_runtime(void *p) { return (void)p, 1; }
uint64_t sw_current(void) { return 0; }
void sw_dropped(struct sw_header *h, uint32_t id, const uint8_t *p, uint32_t n) { (void)h, (void)id, (void)p, (void)n; }

static uint32_t over; /* the first wait */

int world_threads(void) { return 2 + OTHER; }

UNSEEN void world_reset(void)
{
	sw_shared = (struct sw_header *)file;
	memset(file, 0, sizeof file);
	over = 0;
	sim_watch(&over, sizeof over);
	sim_watch(waiters(sw_shared), SW_WAITERS * sizeof(struct sw_waiter));
}

static void wait_twice(void)
{
	struct sw_open o;
	int inner;
	opened(sw_shared, TID, FIRST, payload[0], sizeof payload[0], 0x9000, 1);
	if (!NO_STOP) {
		sim_check(closed(sw_shared, TID, FIRST, &o, &inner) && o.since == 1 && !inner, "the end of a wait finds another wait");
		if (OTHER)
			sim_store32(&over, 1);
	}
	if (!OTHER)
		opened(sw_shared, TID, CONTENTION_START, payload[1], sizeof payload[1], NO_STOP ? 0xb000 : 0x9000, 2);
}

UNSEEN static void read_waits(void)
{
	struct sw_waiter *w = waiters(sw_shared) + (TID & (SW_WAITERS - 1));
	uint32_t was_over = OTHER ? sim_load32(&over) : 0, tid = sim_load32(&w->tid), depth = sim_load32(&w->depth);
	uint64_t since = sim_load64(&w->open[0].since), copy[WORDS];
	struct sw_open o;
	if (!tid || !depth || !since) {
		sim_outcome("none");
		return;
	}
	static const int checked[] = {0, 2, 3, 7}; /* since, id, first, last: others only add executions */
	memset(copy, 0, sizeof copy);
	for (int i = 0; i < 4 && !OTHER; i++)
		copy[checked[i]] = sim_load64((uint64_t *)&w->open[0] + checked[i]);
	if ((OWNER && sim_load32(&w->tid) != tid) || sim_load32(&w->depth) < 1 || (SINCE && sim_load64(&w->open[0].since) != since)) {
		sim_outcome("changed");
		return;
	}
	sim_check(!OTHER || tid == (since == 1 ? TID : TID + SW_WAITERS), "a wait has another thread's number");
	sim_check(!was_over || since == 2, "a wait that is over is read");
	sim_outcome(since == 1 ? "first" : "second");
	if (OTHER)
		return;
	memcpy(&o, copy, sizeof o);
	uint64_t first, last;
	memcpy(&first, o.payload, 8);
	memcpy(&last, o.payload + 32, 8);
	sim_check(first == since && last == since && o.id == (since == 1 ? WAIT_START : CONTENTION_START), "the wait that is read is made of two");
}

void world_thread(int i)
{
	if (i == 0)
		wait_twice();
	else if (i == 1)
		read_waits();
	else
		opened(sw_shared, TID + SW_WAITERS, CONTENTION_START, payload[1], sizeof payload[1], 0x9000, 2);
}

UNSEEN void world_end(void)
{
	const struct sw_waiter *w = waiter(sw_shared, OTHER ? TID + SW_WAITERS : TID, 0);
	sim_check(w && w->depth == 1 && w->open[0].since == 2, "an open wait is lost");
	const struct sw_at what = {.id = WAIT_START};
	const struct kept regs = {.sp = (uint64_t)file};
	sim_check(!sw_take(sw_shared, &what, payload[0], sizeof payload[0], &regs) && sw_shared->missed == 1, "an event without room is not counted");
}
