/* A profiler that calls the methods of the info interface from the places of
 * clr/api and writes down what each answers: the real side of the contract table.
 * Contracts.cs is the program it is loaded into; contracts.h, with the methods and
 * their arguments, is made by the test from that table.
 *
 * Lines of the file CONTRACTS_OUT, in the order of the calls:
 *
 *     version N         the newest info interface that the CLR has
 *     ask PLACE SLOT    a call begins; what is written last before a death names it
 *     got PLACE SLOT HRESULT
 *
 * Sources: dotnet/runtime src/coreclr/inc/corprof.idl (slots, interface ids). */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#include <pthread.h>
#define EXPORT __attribute__((visibility("default")))
#endif

typedef uint32_t hresult;
#define METHOD(self, slot, T) ((T)(*(void ***)(self))[slot])

enum place { INIT, PINVOKE, NATIVE, TRIGGERS, NOTRIGGER, COLLECTING, OWNER, OTHER };
/* BECOMES: the call makes its thread a managed one, so it gets one of its own. */
enum { BECOMES = 1 };
struct method {
	int slot, version, flags;
	const char *args; /* a letter for each, see argument(); zeros follow */
	uint32_t skip;    /* a bit for each place */
};
struct interface {
	int version;
	uint8_t id[16];
};
#include "contracts.h"

enum { SLOTS = 128, ARGS = 12, ALL_PLACES = 8 };
enum { SET_EVENT_MASK = 16, SET_EVENT_MASK2 = 82, SUSPEND_RUNTIME = 97, RESUME_RUNTIME = 98 };
/* MONITOR_MODULE_LOADS, MONITOR_JIT_COMPILATION, MONITOR_SUSPENDS, ENABLE_STACK_SNAPSHOT; BASIC_GC. */
enum { MASK = 0x10010024, HIGH_MASK = 0x10, MONITOR_GC = 0x80 };

static void *info;
static int version;
static uint32_t mask, high_mask;
static uint64_t module; /* the first that was loaded */
static FILE *out;
static int armed[ALL_PLACES];

static hresult nothing(void) { return 0; }

/* Each argument of a call: 0, a pointer to room for an answer, the event mask, or
 * a callback, a module. */
static uint64_t argument(char what, int i)
{
	static uint64_t room[ARGS][64];
	switch (what) {
	case 'p': memset(room[i], 0, sizeof room[i]); return (uintptr_t)room[i];
	case 'm': return mask;
	case 'h': return high_mask;
	case 'c': return (uintptr_t)nothing;
	case 'M': return module;
	}
	return 0;
}

typedef hresult (*any_fn)(void *, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static void ask(enum place place, const struct method *m)
{
	uint64_t a[ARGS] = {0};
	for (int i = 0; i < ARGS && m->args[i]; i++)
		a[i] = argument(m->args[i], i);
	fprintf(out, "ask %d %d\n", place, m->slot);
	hresult hr = METHOD(info, m->slot, any_fn)(info, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]);
	fprintf(out, "got %d %d %08x\n", place, m->slot, hr);
}

/* A native thread that runs f and is waited for. */
struct job {
	void (*f)(enum place, const struct method *);
	enum place place;
	const struct method *m;
};

#ifdef _WIN32
static DWORD WINAPI run_job(void *p)
{
	struct job *j = p;
	j->f(j->place, j->m);
	return 0;
}

static void on_thread(struct job j)
{
	HANDLE t = CreateThread(NULL, 0, run_job, &j, 0, NULL);
	WaitForSingleObject(t, INFINITE);
	CloseHandle(t);
}
#else
static void *run_job(void *p)
{
	struct job *j = p;
	j->f(j->place, j->m);
	return NULL;
}

static void on_thread(struct job j)
{
	pthread_t t;
	if (pthread_create(&t, NULL, run_job, &j) == 0)
		pthread_join(t, NULL);
}
#endif

/* Asks all methods; with own, each that changes its thread on one of its own. */
static void ask_all(enum place place, int own)
{
	for (const struct method *m = methods; m->slot; m++) {
		if (m->version > version || m->skip & 1u << place)
			continue;
		if (own && m->flags & BECOMES)
			on_thread((struct job){ask, place, m});
		else
			ask(place, m);
	}
}

static void native(enum place place, const struct method *m) { (void)m, ask_all(place, 1); }

/* The thread that suspends the runtime, and another one meanwhile. */
static void owner(enum place place, const struct method *m)
{
	(void)m;
	if (version < 10)
		return;
	hresult hr;
	do
		hr = METHOD(info, SUSPEND_RUNTIME, hresult (*)(void *))(info);
	while (hr == 0x80131388u); /* somebody else's suspension */
	if (hr)
		return;
	ask_all(place, 0);
	on_thread((struct job){native, OTHER, NULL});
	METHOD(info, RESUME_RUNTIME, hresult (*)(void *))(info);
}

/* The program's part. */
EXPORT void contracts_arm(int place) { __atomic_store_n(&armed[place], 1, __ATOMIC_RELEASE); }
EXPORT void contracts_pinvoke(void) { ask_all(PINVOKE, 0); }
EXPORT void contracts_native(void) { on_thread((struct job){native, NATIVE, NULL}); }
EXPORT void contracts_owner(void) { on_thread((struct job){owner, OWNER, NULL}); }
EXPORT void contracts_end(void) { fclose(out); }

/* A callback asks once, when the program has armed it. */
static void once(enum place place)
{
	if (__atomic_exchange_n(&armed[place], 0, __ATOMIC_ACQ_REL))
		ask_all(place, 0);
}

static hresult on_module(void *self, uint64_t id, hresult status)
{
	(void)self;
	module = module || status ? module : id;
	return 0;
}

static hresult on_jit(void) { return once(TRIGGERS), 0; }
static hresult on_suspend(void) { return once(NOTRIGGER), 0; }
static hresult on_collection(void) { return once(COLLECTING), 0; }

static hresult on_notification_only(void *self, int *yes)
{
	(void)self;
	*yes = 0;
	return 0;
}

static hresult query(void *self, const void *id, void **made)
{
	(void)id;
	*made = self;
	return 0;
}

typedef hresult (*query_fn)(void *, const void *, void **);

static hresult initialize(void *self, void *unknown)
{
	(void)self;
	for (const struct interface *i = interfaces; i->version && !info; i++)
		if (METHOD(unknown, 0, query_fn)(unknown, i->id, &info) == 0)
			version = i->version;
		else
			info = NULL;
	out = fopen(getenv("CONTRACTS_OUT"), "w");
	if (!info || !out)
		return 0x80004005u;
	setvbuf(out, NULL, _IONBF, 0);
	fprintf(out, "version %d\n", version);
	mask = MASK | (version < 10 ? MONITOR_GC : 0), high_mask = version < 10 ? 0 : HIGH_MASK;
	if (version < 5)
		METHOD(info, SET_EVENT_MASK, hresult (*)(void *, uint32_t))(info, mask);
	else
		METHOD(info, SET_EVENT_MASK2, hresult (*)(void *, uint32_t, uint32_t))(info, mask, high_mask);
	ask_all(INIT, 0);
	return 0;
}

static void *callbacks[SLOTS];
static void *profiler = callbacks;

static hresult create(void *self, void *outer, const void *id, void **made)
{
	(void)self, (void)outer, (void)id;
	for (int i = 0; i < SLOTS; i++)
		callbacks[i] = (void *)nothing;
	callbacks[0] = (void *)query;
	callbacks[3] = (void *)initialize;
	callbacks[14] = (void *)on_module;
	callbacks[23] = (void *)on_jit;
	callbacks[42] = (void *)on_suspend;
	callbacks[73] = (void *)on_collection;
	callbacks[97] = (void *)on_notification_only;
	*made = &profiler;
	return 0;
}

static void *factory_methods[] = {(void *)query, (void *)nothing, (void *)nothing, (void *)create, (void *)nothing};
static void *factory = factory_methods;

EXPORT hresult DllGetClassObject(const void *class_id, const void *id, void **made)
{
	(void)class_id, (void)id;
	*made = &factory;
	return 0;
}

EXPORT hresult DllCanUnloadNow(void) { return 1; }
