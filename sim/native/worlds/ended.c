/* sample/probe/src/session.c: the tool of a recording of events has died, and another recording
 * begins. The thread that ends the first session may start at any time.
 * NONE 1: that thread cannot be made. */
#ifndef NONE
#define NONE 0
#endif
#include "world.h"

#include "session.c"

enum { SLOTS = 106 };
static struct sw_header headers[2];
static void *slots_of_info[SLOTS], **object = slots_of_info;
static uint32_t created[2], sessions, stops[3];
struct sw_header *sw_shared;

void sw_forget(void) {}

static hresult ok(void) { return 0; }
static hresult query(void *this, const void *iid, void **out) { return (void)this, (void)iid, *out = &object, 0; }
static hresult start(void *this, uint32_t n, void *config, int rundown, uint64_t *id)
{
	(void)this, (void)n, (void)config, (void)rundown;
	*id = ++sessions;
	return 0;
}
static hresult stop(void *this, uint64_t id)
{
	(void)this;
	sim_range(&stops[id], sizeof stops[id], SIM_BOTH);
	sim_check(++stops[id] == 1, "a session is ended twice");
	return 0;
}

int pthread_attr_init(void *a) { return (void)a, 0; }
int pthread_attr_setstacksize(void *a, size_t n) { return (void)a, (void)n, 0; }
int pthread_attr_setdetachstate(void *a, int n) { return (void)a, (void)n, 0; }
int pthread_create(uint64_t *id, const void *a, void *(*f)(void *), void *h)
{
	(void)id, (void)a, (void)f;
	if (NONE)
		return 11;
	sim_store32(&created[h == &headers[1]], 1);
	return 0;
}

int world_threads(void) { return 3; }

static void record(struct sw_header *h)
{
	h->stale = 1; /* nothing beats: the tool is gone at once */
	h->events = SW_WAITS;
	sw_shared = h;
	sw_listen(0, &object);
}

UNSEEN void world_reset(void)
{
	sim_kernel_reset();
	sim_watch(headers, sizeof headers);
	sim_watch(&info, sizeof info);
	sim_watch(&session, sizeof session);
	sim_watch(created, sizeof created);
	sim_watch(stops, sizeof stops);
	memset(headers, 0, sizeof headers);
	memset(created, 0, sizeof created);
	memset(stops, 0, sizeof stops);
	sessions = 0;
	for (int i = 0; i < SLOTS; i++)
		slots_of_info[i] = (void *)ok;
	slots_of_info[INFO_QUERY] = (void *)query;
	slots_of_info[INFO_START] = (void *)start;
	slots_of_info[INFO_STOP] = (void *)stop;
	record(&headers[0]);
}

static int is_created(void *word) { return *(uint32_t *)word != 0; }

void world_thread(int i)
{
	if (i == 0) {
		if (sw_silence(&headers[0])) /* prepare: the tool tries again later */
			sim_store32(&created[1], 2);
		else
			record(&headers[1]);
		return;
	}
	if (NONE)
		return;
	uint32_t *word = &created[i - 1];
	sim_wait(word, sizeof *word, "wait to be created", is_created, word);
	if (sim_load32(word) == 1)
		finish(&headers[i - 1]);
}

UNSEEN void world_end(void)
{
	sim_check(NONE || (stops[1] == 1 && (sessions == 1 || stops[2] == 1)), "a session is never ended");
	sim_check(NONE || (headers[0].session == 2 && (sessions == 1 || headers[1].session == 2)), "a session that has ended is waited for");
	sim_outcome(sessions == 1 ? "later" : "at once");
}
