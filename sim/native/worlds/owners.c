/* capi/client/src/ids.c: thread 11 of the system has ended, and its ThreadDestroyed comes late. A new thread
 * gets the number NEXT. That is the same number, or another one that belongs into the same entry. With OTHER,
 * the entry is already free, and a second new thread gets that number. Meanwhile the sampling thread reads
 * ids. */
#include "native.h"

#define PLACES 2
#define NEAR_PLACES 2
#include "ids.c"

enum { OLD = 100, NEW = 200, SECOND = 300, NUMBER = 11 };

int world_threads(void) { return 3; }

UNSEEN void world_reset(void)
{
	for (int i = 0; i < PLACES; i++)
		ids[i].os = ids[i].id = 0;
	sim_watch(ids, sizeof ids);
	seedwalk_sampler_thread_assigned(OLD, NUMBER);
	if (OTHER)
		seedwalk_sampler_thread_destroyed(OLD);
}

static void read_ids(void)
{
	uint64_t old = sw_id_of(NUMBER), new = sw_id_of(NEXT);
	sim_check(old == 0 || (old == OLD && !OTHER) || (NEXT == NUMBER && old == NEW), "the id of another thread");
	sim_check(new == 0 || new == NEW || (NEXT == NUMBER && new == OLD), "the id of another thread");
	sim_check(old != NEW || new == NEW, "an old id comes back");
	sim_outcome(new == NEW ? "new" : new == OLD ? "old" : "none");
}

void world_thread(int i)
{
	if (i == 0)
		read_ids();
	else if (i == 1 && !OTHER)
		seedwalk_sampler_thread_destroyed(OLD);
	else
		seedwalk_sampler_thread_assigned(i == 1 ? SECOND : NEW, i == 1 ? OTHER : NEXT);
}

void world_end(void)
{
	sim_check(sw_id_of(NEXT) == NEW && (!OTHER || sw_id_of(OTHER) == SECOND), "the id of a living thread is lost");
	sim_check(NEXT == NUMBER || sw_id_of(NUMBER) == 0, "a thread that has ended keeps its id");
}
