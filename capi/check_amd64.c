/* Reports a vendor's omissions at the first sample: the runtime has threads or modules that were not
 * forwarded, or a thread that was forwarded is gone from the runtime.
 *
 * Runs on the sampler's thread, which the runtime does not know, while nothing is suspended: GetEventMask,
 * EnumThreads, and EnumModules are allowed there. A difference may also be a callback in progress, so it
 * counts only if it lasts. */
#include "sampler.h"

#include <stdio.h>

enum { GET_EVENT_MASK = 6, ENUM_MODULES = 66, ENUM_THREADS = 71, RELEASE = 2, ENUM_COUNT = 6, ENUM_NEXT = 7 };
enum { LASTS_MS = 200 };

/* ThreadDestroyed of a native thread comes from the finalizer's thread, so it may be seconds late. Only a
 * longer delay is worth a warning. */
#define LATE_NS 10000000000ull

uint32_t sw_forwarded_created, sw_forwarded_assigned, sw_forwarded_loaded;

static struct sw_thread known[SW_THREADS];
static uint64_t ids[SW_THREADS];

/* Lists the ids of one of the runtime's enumerations; -1: not available. */
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

enum { CREATED = 1, ASSIGNED = 2, LOADED = 8 };
static const struct {
	int bit;
	const char *callback, *call;
} callbacks[] = {
	{CREATED, "ThreadCreated", "thread_created"},
	{ASSIGNED, "ThreadAssignedToOSThread", "thread_assigned"},
	{LOADED, "ModuleLoadFinished", "module_loaded"},
};

static int unless(const uint32_t *forwarded, int bit) { return __atomic_load_n(forwarded, __ATOMIC_ACQUIRE) ? 0 : bit; }

/* watch_destroyed warns of a thread that left the runtime long ago without a ThreadDestroyed. ids holds n
 * threads of the runtime. Sampling continues, since an ended thread is not sampled. */
static void watch_destroyed(int ours, int n)
{
	static uint64_t thread, since;
	uint64_t first = 0;
	for (int i = 0; i < ours; i++) {
		if (is_among(known[i].thread_id, n) || !sw_thread_alive(known[i].thread_id, known[i].tid))
			continue;
		if (known[i].thread_id == thread)
			first = thread;
		else if (!first)
			first = known[i].thread_id;
	}
	uint64_t now = sw_now_ns();
	if (first != thread || !first) {
		thread = first;
		since = now;
	} else if (since && now - since > LATE_NS) {
		sw_problem("ThreadDestroyed of a thread has not come for 10 s: if it is not forwarded, call seedwalk_sampler_thread_destroyed in it");
		since = 0; /* once per thread */
	}
}

/* Returns which callbacks seem not to be forwarded. *all: the runtime has started, so every omission would
 * show. */
static int missing(int *all)
{
	/* read before the runtime's list, which then contains any new thread */
	int out = 0, ours = sw_threads_copy(known, SW_THREADS);
	int n = enumerate(ENUM_THREADS, ids, SW_THREADS);
	*all = n != 0;
	if (n > 0)
		out |= unless(&sw_forwarded_created, CREATED) | unless(&sw_forwarded_assigned, ASSIGNED);
	if (n >= 0 && n < SW_THREADS)
		watch_destroyed(ours, n);
	n = enumerate(ENUM_MODULES, ids, SW_THREADS);
	*all &= n != 0;
	return n > 0 ? out | unless(&sw_forwarded_loaded, LOADED) : out;
}

/* A text with the name of each callback, then its call. */
static void tell(int what)
{
	char text[400];
	int at = 0, n = 0;
	for (size_t i = 0; i < sizeof callbacks / sizeof *callbacks; i++)
		if (what & callbacks[i].bit)
			at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", n++ ? ", " : "", callbacks[i].callback);
	at += snprintf(text + at, sizeof text - (size_t)at, n > 1 ? " are not forwarded: call" : " is not forwarded: call");
	n = 0;
	for (size_t i = 0; i < sizeof callbacks / sizeof *callbacks; i++)
		if (what & callbacks[i].bit)
			at += snprintf(text + at, sizeof text - (size_t)at, "%s seedwalk_sampler_%s", n++ ? "," : "", callbacks[i].call);
	snprintf(text + at, sizeof text - (size_t)at, n > 1 ? " in them" : " in it");
	sw_problem(text);
}

int sw_check_forwarded(int *all)
{
	uint32_t mask = 0;
	if (SW_METHOD(sw_info, GET_EVENT_MASK, sw_hresult (*)(void *, uint32_t *))(sw_info, &mask) == 0 && (mask & SEEDWALK_SAMPLER_EVENTS) != SEEDWALK_SAMPLER_EVENTS) {
		sw_problem("SetEventMask was not given SEEDWALK_SAMPLER_EVENTS: MONITOR_MODULE_LOADS, MONITOR_THREADS, ENABLE_STACK_SNAPSHOT");
		return SEEDWALK_NO_EVENTS;
	}
	int what = missing(all);
	for (int ms = 0; what && ms < LASTS_MS; ms += 5) {
		sw_sleep_us(5000);
		what &= missing(all);
	}
	if (!what)
		return SEEDWALK_OK;
	tell(what);
	return SEEDWALK_NOT_FORWARDED;
}
