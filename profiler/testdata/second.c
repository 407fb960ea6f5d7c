/* Another vendor's profiler: it counts the CLR's callbacks and continuously writes the counts into the
 * file that SECOND_COUNTS names: five numbers of 8 bytes, modules loaded, methods compiled, threads
 * created, collections started, events delivered. With SECOND_EVENTS it has an event session of its own
 * for waits, locks, allocations, and exceptions. Source: dotnet/runtime src/coreclr/inc/corprof.idl
 * (slots, event mask). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
typedef int32_t hresult;
enum { SLOTS = 128 };
enum { MODULES, METHODS, THREADS, COLLECTIONS, EVENTS, COUNTS };

struct object { void **table; };
static void *callback_table[SLOTS], *factory_table[5];
static struct object callback = {callback_table}, factory = {factory_table};
static uint64_t *counts;

static hresult query(struct object *self, const void *iid, void **out)
{
	(void)iid;
	*out = self;
	return 0;
}

static uint32_t reference(void *self) { return (void)self, 1; }
static hresult nothing(void) { return 0; }
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

static hresult create(void *self, void *outer, const void *iid, void **out)
{
	(void)self, (void)outer, (void)iid;
	*out = &callback;
	return 0;
}

EXPORT hresult DllGetClassObject(const void *clsid, const void *iid, void **out)
{
	(void)clsid, (void)iid;
	for (int i = 0; i < SLOTS; i++)
		callback_table[i] = (void *)nothing;
	callback_table[0] = factory_table[0] = (void *)query;
	callback_table[1] = callback_table[2] = factory_table[1] = factory_table[2] = (void *)reference;
	callback_table[3] = (void *)initialize;
	callback_table[14] = (void *)module_loaded;
	callback_table[23] = (void *)compiled;
	callback_table[29] = (void *)thread_made;
	callback_table[73] = (void *)collected;
	callback_table[80] = (void *)attach;
	callback_table[95] = (void *)delivered;
	callback_table[97] = (void *)notification_only;
	factory_table[3] = (void *)create;
	factory_table[4] = (void *)nothing;
	*out = &factory;
	return 0;
}

EXPORT hresult DllCanUnloadNow(void) { return 1; }
