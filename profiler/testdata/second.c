/* Another vendor's profiler: it counts the CLR's callbacks and continuously writes the counts into the
 * file that SECOND_COUNTS names: five numbers of 8 bytes, modules loaded, methods compiled, threads
 * created, collections started, events delivered. With SECOND_EVENTS it has an event session of its own
 * for waits, locks, allocations, and exceptions. Source: dotnet/runtime src/coreclr/inc/corprof.idl
 * (slots, event mask). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler.h"

enum { MODULES, METHODS, THREADS, COLLECTIONS, EVENTS, COUNTS };

static uint64_t *counts;

static void count(int what) { __atomic_fetch_add(counts + what, 1, __ATOMIC_RELAXED); }
static hresult module_loaded(void) { return count(MODULES), 0; }
static hresult compiled(void) { return count(METHODS), 0; }
static hresult thread_made(void) { return count(THREADS), 0; }
static hresult collected(void) { return count(COLLECTIONS), 0; }
static hresult delivered(void) { return count(EVENTS), 0; }

static hresult start_session(struct object *info, uint32_t mask)
{
	enum { MONITOR_EVENT_PIPE = 0x80, VERBOSE = 5 };
	static const uint32_t info12[4] = {0x27b24ccd, 0x47c51cb1, 0x1998ee96, 0x5909c30d};
	static const uint16_t runtime[] = u"Microsoft-Windows-DotNETRuntime";
	struct { const uint16_t *name; uint64_t keywords; uint32_t level, pad; const uint16_t *filter; } config = {runtime, 0xc000000c001, VERBOSE, 0, 0};
	struct object *newer;
	uint64_t session;
	hresult e = ((hresult(*)(void *, const void *, void **))info->table[0])(info, info12, (void **)&newer);
	if (e == 0)
		e = ((hresult(*)(void *, uint32_t, uint32_t))newer->table[82])(newer, mask, MONITOR_EVENT_PIPE);
	return e ? e : ((hresult(*)(void *, uint32_t, void *, int, uint64_t *))newer->table[101])(newer, 1, &config, 0, &session);
}

static hresult set_mask(struct object *info)
{
	enum { MODULE_LOADS = 4, JIT = 0x20, THREAD = 0x200, GC = 0x80 };
	static uint64_t fallback[COUNTS];
	const char *path = getenv("SECOND_COUNTS");
	int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
	counts = fallback;
	if (fd >= 0 && ftruncate(fd, sizeof fallback) == 0) {
		void *p = mmap(0, sizeof fallback, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		counts = p == MAP_FAILED ? fallback : p;
	}
	if (fd >= 0)
		close(fd);
	uint32_t mask = MODULE_LOADS | JIT | THREAD | (getenv("SECOND_GC") ? GC : 0);
	if (getenv("SECOND_EVENTS"))
		return start_session(info, mask);
	return ((hresult(*)(void *, uint32_t))info->table[16])(info, mask);
}

static hresult initialize(void *self, struct object *info) { return (void)self, set_mask(info); }

static hresult attach(void *self, struct object *info, void *data, uint32_t size)
{
	(void)self, (void)data, (void)size;
	return set_mask(info);
}

/* One that is loaded beside another must say nothing here: this is a plain one. */
static hresult notification_only(void *self, int32_t *yes) { return (void)self, *yes = 0, 0; }

PROFILER({3, initialize}, {14, module_loaded}, {23, compiled}, {29, thread_made}, {73, collected}, {80, attach}, {95, delivered}, {97, notification_only})
