/* The probe as a profiler of the CLR. It cancels its own activation once the tool has what it needs. Then no
 * profiler is active, unless the tool requests events. The library stays mapped (nodelete) for its signal
 * handler. */
#include "local.h"

#define EXPORT __attribute__((visibility("default")))
typedef int32_t hresult;
enum { OK = 0, NOINTERFACE = (int32_t)0x80004002, CLASSNOTAVAILABLE = (int32_t)0x80040111, FAIL = (int32_t)0x80004005 };
enum { CANCEL_ACTIVATION = (int32_t)0x80131375 };

/* Slots of ICorProfilerCallback (corprof.idl). */
enum { SLOT_INITIALIZE = 3, SLOT_SHUTDOWN = 4, SLOT_ATTACH = 80, SLOT_DELIVERED = 95, SLOT_NOTIFICATION_ONLY = 97, SLOTS = 128 };

struct object { void **table; };

static void *callback_table[SLOTS], *factory_table[5];
static struct object factory = {factory_table};

/* A detaching profiler may still exist when the next one attaches, and the runtime delivers events to both.
 * So each has an object of its own. */
enum { OBJECTS = 16 };
static struct object callbacks[OBJECTS];
static uint32_t created;

/* One object implements every interface. Only a runtime with newer callbacks asks for unknown interfaces, and
 * all their methods return S_OK. */
static hresult query(struct object *self, const void *iid, void **out)
{
	(void)iid;
	*out = self;
	return OK;
}

static uint32_t reference(void *self)
{
	(void)self;
	return 1; /* static objects are never freed */
}

static hresult nothing(void) { return OK; }

/* begin starts the recording. It returns OK only if the profiler must stay for events. */
static hresult begin(void *self, const char *path, void *info)
{
	return sw_start(path) == 0 && sw_shared->events && sw_listen(self, info) == 0 ? OK : CANCEL_ACTIVATION;
}

static hresult initialize(void *self, void *info)
{
	char path[108];
	return sw_socket_from_environment(path, sizeof path) == 0 ? begin(self, path, info) : CANCEL_ACTIVATION;
}

/* attach receives the path of the tool's socket. */
static hresult attach(void *self, void *info, const char *data, uint32_t size)
{
	char path[108];
	uint32_t i = 0;
	for (; i < size && i < sizeof path - 1; i++)
		path[i] = data[i];
	path[i] = 0;
	return i > 0 ? begin(self, path, info) : CANCEL_ACTIVATION;
}

enum { STEPS = 1000 }; /* a second */

static void wait_a_step(void)
{
	int64_t step[2] = {0, 1000000};
	sys3(NR_nanosleep, P(step), 0, 0);
}

/* shut_down lets the tool walk what is still in the ring, for which it needs this process. The wait ends after
 * a second, or when the tool is dead. */
static hresult shut_down(void *self)
{
	struct sw_header *h = sw_shared;
	(void)self;
	for (int i = 0; i < STEPS && h && h->session == 1 && sw_tool_lives(h, h->stale); i++) {
		if (__atomic_load_n(&h->tail, __ATOMIC_ACQUIRE) == __atomic_load_n(&h->head, __ATOMIC_ACQUIRE))
			break;
		wait_a_step();
	}
	return OK;
}

/* hold_exit runs when the process exits. While h->hold is set, it waits: the tool still has to verify the tables of
 * a runtime that has just started, and to walk the samples taken so far. The wait ends as that of shut_down does. */
static void __attribute__((destructor)) hold_exit(void)
{
	struct sw_header *h = sw_shared;
	if (!h || h->pid != (uint32_t)sys3(NR_getpid, 0, 0, 0)) /* a child that has not called exec */
		return;
	for (int i = 0; i < STEPS && __atomic_load_n(&h->hold, __ATOMIC_RELAXED) && sw_tool_lives(h, h->stale); i++)
		wait_a_step();
}

/* notification_only leaves the place of the main profiler to others. */
static hresult notification_only(void *self, int32_t *yes)
{
	(void)self;
	*yes = 1;
	return OK;
}

static hresult create(void *self, void *outer, const void *iid, void **out)
{
	(void)self, (void)outer, (void)iid;
	struct object *o = &callbacks[__atomic_fetch_add(&created, 1, __ATOMIC_RELAXED) % OBJECTS];
	o->table = callback_table;
	*out = o;
	return OK;
}

/* These are weak: every process that loads a profiler has them, with glibc and with musl, and the library
 * still loads where they are missing. */
extern void *dlopen(const char *, int) __attribute__((weak));
extern void *dlsym(void *, const char *) __attribute__((weak));

/* other loads the library that the tool named instead of this one. */
static hresult other(const char *path, const void *clsid, const void *iid, void **out)
{
	enum { LAZY = 1 };
	if (!dlopen || !dlsym)
		return CLASSNOTAVAILABLE;
	void *library = dlopen(path, LAZY);
	hresult (*get)(const void *, const void *, void **) = library ? (hresult(*)(const void *, const void *, void **))dlsym(library, "DllGetClassObject") : 0;
	return get ? get(clsid, iid, out) : CLASSNOTAVAILABLE;
}

EXPORT hresult DllGetClassObject(const void *clsid, const void *iid, void **out)
{
	char path[108], instead[1024];
	if (sw_socket_from_environment(path, sizeof path) == 0 && sw_ask_tool(path, instead, sizeof instead))
		return other(instead, clsid, iid, out);
	for (int i = 0; i < SLOTS; i++)
		callback_table[i] = (void *)nothing;
	callback_table[0] = factory_table[0] = (void *)query;
	callback_table[1] = callback_table[2] = factory_table[1] = factory_table[2] = (void *)reference;
	callback_table[SLOT_INITIALIZE] = (void *)initialize;
	callback_table[SLOT_ATTACH] = (void *)attach;
	callback_table[SLOT_SHUTDOWN] = (void *)shut_down;
	callback_table[SLOT_NOTIFICATION_ONLY] = (void *)notification_only;
	callback_table[SLOT_DELIVERED] = (void *)sw_delivered;
	factory_table[3] = (void *)create;
	factory_table[4] = (void *)nothing;
	*out = &factory;
	return OK;
}

EXPORT hresult DllCanUnloadNow(void) { return 1; }
