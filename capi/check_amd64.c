/* What a vendor forgets is told at the first sample: the runtime knows threads and
 * modules that nobody has told us of, or we know threads that it has forgotten.
 *
 * Asked on the sampler's thread, which the runtime does not know, while nothing is
 * suspended: GetEventMask, EnumThreads and EnumModules are let in there. What looks
 * like a mistake may be a callback under way, so it must last. */
#include "sampler.h"

enum { GET_EVENT_MASK = 6, ENUM_MODULES = 66, ENUM_THREADS = 71, RELEASE = 2, ENUM_COUNT = 6, ENUM_NEXT = 7 };
enum { LASTS_MS = 200 };

uint32_t sw_forwarded_created, sw_forwarded_assigned, sw_forwarded_loaded;

static struct sw_thread known[SW_THREADS];
static uint64_t ids[SW_THREADS];

/* The ids of what an enumeration of the runtime's holds; -1: it does not tell. */
static int enumerate(int slot, uint64_t *out, uint32_t room)
{
	void *e = NULL;
	uint32_t n = 0;
	if (SW_METHOD(sw_info, slot, sw_hresult (*)(void *, void **))(sw_info, &e) != 0 || !e)
		return -1;
	sw_hresult hr = SW_METHOD(e, ENUM_NEXT, sw_hresult (*)(void *, uint32_t, uint64_t *, uint32_t *))(e, room, out, &n);
	SW_METHOD(e, RELEASE, uint32_t (*)(void *))(e);
	return hr & 0x80000000u ? -1 : (int)n;
}

static int is_among(uint64_t id, int n)
{
	for (int i = 0; i < n; i++)
		if (ids[i] == id)
			return 1;
	return 0;
}

/* Which callback seems not to be forwarded, as words, NULL if none. *all: the runtime
 * has started, so that every mistake could be seen. */
static const char *missing(int *all)
{
	int ours = sw_threads_copy(known, SW_THREADS); /* before the runtime's: a thread that comes now is in those */
	int n = enumerate(ENUM_THREADS, ids, SW_THREADS);
	*all = n != 0;
	if (n > 0 && !__atomic_load_n(&sw_forwarded_created, __ATOMIC_ACQUIRE))
		return "ThreadCreated is not forwarded: call seedwalk_sampler_thread_created in it";
	if (n > 0 && !__atomic_load_n(&sw_forwarded_assigned, __ATOMIC_ACQUIRE))
		return "ThreadAssignedToOSThread is not forwarded: call seedwalk_sampler_thread_assigned in it";
	for (int i = 0; n >= 0 && n < SW_THREADS && i < ours; i++)
		if (!is_among(known[i].thread_id, n) && sw_thread_alive(known[i].thread_id, known[i].tid))
			return "ThreadDestroyed is not forwarded: call seedwalk_sampler_thread_destroyed in it";
	n = enumerate(ENUM_MODULES, ids, SW_THREADS);
	*all &= n != 0;
	if (n > 0 && !__atomic_load_n(&sw_forwarded_loaded, __ATOMIC_ACQUIRE))
		return "ModuleLoadFinished is not forwarded: call seedwalk_sampler_module_loaded in it";
	return NULL;
}

int sw_check_forwarded(int *all)
{
	uint32_t mask = 0;
	if (SW_METHOD(sw_info, GET_EVENT_MASK, sw_hresult (*)(void *, uint32_t *))(sw_info, &mask) == 0 && (mask & SEEDWALK_SAMPLER_EVENTS) != SEEDWALK_SAMPLER_EVENTS) {
		sw_problem("SetEventMask was not given SEEDWALK_SAMPLER_EVENTS: MONITOR_MODULE_LOADS, MONITOR_THREADS, ENABLE_STACK_SNAPSHOT");
		return SEEDWALK_NO_EVENTS;
	}
	const char *what = missing(all);
	for (int ms = 0; what && ms < LASTS_MS; ms += 5) {
		sw_sleep_us(5000);
		what = missing(all);
	}
	if (!what)
		return SEEDWALK_OK;
	sw_problem(what);
	return SEEDWALK_NOT_FORWARDED;
}
