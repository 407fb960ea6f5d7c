/* A profiler in plain C over the client library: no Go in the program, no suspension of the runtime.
 * Linux, .NET 8 or later, or Windows x64, .NET 10 or later; the tool `seedwalk` is next to the library, or
 * SEEDWALK_ENGINE is its path.
 *
 *     gcc -O2 -shared -fPIC -o libclient.so client.c libseedwalk_client.a -lpthread
 *     x86_64-w64-mingw32-gcc -O2 -shared -o client.dll client.c libseedwalk_client.a -static -lpthread
 *
 * It is the main profiler, a notification profiler (if MINE_BESIDE is set), or one that was attached. At
 * the end, and every second, it writes to the file SAMPLER_OUT the number of stacks, and the inclusive
 * CPU time of each method and each native function with a name. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "seedwalk_client.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
typedef uint32_t result; /* HRESULT */
enum { OK = 0, FAIL = (int)0x80004005, MONITOR_THREADS = 0x200, MONITOR_EXCEPTIONS = 0x40, EXCEPTION = 1 };

static int stopping;
static pthread_t sampler;
static int started;

/* ---- the results ---- */
enum { METHODS = 4096 };
static struct { char name[256]; uint64_t cpu; } methods[METHODS];
static long samples, complete, frames, unmanaged, copies, whole, opened, last_error;
static char problem[400]; /* why, in words */

static void failed(int error)
{
	last_error = error; /* the program continues without samples */
	seedwalk_sampler_problem(problem, sizeof problem);
}

static void count(const char *name, uint64_t cpu)
{
	int i = 0;
	while (i < METHODS - 1 && methods[i].name[0] && strcmp(methods[i].name, name))
		i++;
	snprintf(methods[i].name, sizeof methods[i].name, "%s", name);
	methods[i].cpu += cpu;
}

static void on_stack(void *client, const seedwalk_stack *s) /* your code goes here */
{
	(void)client;
	copies += s->tag == EXCEPTION, whole += s->tag == EXCEPTION && !s->gap, samples += !s->tag, complete += !s->tag && !s->gap;
	for (int i = 0; i < s->count; i++) {
		const seedwalk_named_frame *f = s->frames + i;
		frames++, unmanaged += f->frame.kind == SEEDWALK_NATIVE;
		int again = 0; /* count recursion once */
		for (int k = 0; k < i && !again; k++)
			again = f->method == s->frames[k].method;
		if (!again && *f->method && s->cpu_ns)
			count(f->method, s->cpu_ns);
	}
}

static void write_down(void)
{
	const char *path = getenv("SAMPLER_OUT");
	FILE *f = path ? fopen(path, "w") : 0;
	if (!f)
		return;
	fprintf(f, "samples %ld complete %ld frames %ld unmanaged %ld\n", samples, complete, frames, unmanaged);
	fprintf(f, "copies %ld complete %ld\nopened %ld\nerror %ld %s\n", copies, whole, opened, last_error, problem);
	for (int i = 0; i < METHODS && methods[i].name[0]; i++)
		fprintf(f, "top %llu %s\n", (unsigned long long)methods[i].cpu, methods[i].name);
	fclose(f);
}

/* ---- the thread that fetches ---- */

/* begin starts the helper, also again after it has ended. */
static void begin(void)
{
	seedwalk_client_options o = {.size = sizeof o, .millihertz = 1000 * 100};
	const char *rate = getenv("MINE_HERTZ");
	if (rate)
		o.millihertz = 1000 * (uint32_t)atoi(rate);
	int e = seedwalk_client_configure(&o);
	e = e ? e : seedwalk_sampler_open(0);
	if (e)
		failed(e);
	opened += !e;
}

static void *life(void *nothing)
{
	enum { STEP_US = 5000, SECOND = 200 };
	seedwalk_sampler_request q = {.size = sizeof q, .on_stack = on_stack};
	(void)nothing;
	for (int tick = 1; !__atomic_load_n(&stopping, __ATOMIC_ACQUIRE); tick++) {
		int e = seedwalk_sampler_sample(&q, 0);
		if (e && e != SEEDWALK_NOT_OPEN)
			failed(e);
		if (tick % SECOND == 0) {
			if (e == SEEDWALK_ENGINE_GONE || e == SEEDWALK_NOT_OPEN)
				begin();
			write_down();
		}
		usleep(STEP_US);
	}
	return 0;
}

static void begin_all(void)
{
	begin();
	started = !pthread_create(&sampler, 0, life, 0);
}

static void end_all(void)
{
	__atomic_store_n(&stopping, 1, __ATOMIC_RELEASE);
	if (started)
		pthread_join(sampler, 0);
	seedwalk_sampler_close();
	write_down();
}

/* ---- called by the CLR ---- */
static result set_mask(void *unknown)
{
	static const uint8_t info_id[16] = {0x7d, 0x55, 0xb5, 0x28, 0x3f, 0x3f, 0xb4, 0x48, 0x90, 0xb2, 0x5f, 0x9e, 0xea, 0x2f, 0x6c, 0x48}; /* ICorProfilerInfo */
	void *info = 0;
	result (*query_interface)(void *, const void *, void **) = (result(*)(void *, const void *, void **))(*(void ***)unknown)[0];
	if (query_interface(unknown, info_id, &info))
		return (result)FAIL;
	result (*set_event_mask)(void *, uint32_t) = (result(*)(void *, uint32_t))(*(void ***)info)[16];
	return set_event_mask(info, MONITOR_THREADS | MONITOR_EXCEPTIONS);
}

static result initialize(void *self, void *info)
{
	(void)self;
	result r = set_mask(info);
	if (!r)
		begin_all();
	return r;
}

static result attach(void *self, void *info, void *data, uint32_t size)
{
	(void)data, (void)size;
	return initialize(self, info);
}

static result shut_down(void *self) { return (void)self, end_all(), OK; }
static result detached(void *self) { return (void)self, end_all(), OK; }
static result beside(void *self, int32_t *yes) { return (void)self, *yes = getenv("MINE_BESIDE") != 0, OK; }
static result assigned(void *self, uint64_t thread, uint32_t os) { return (void)self, seedwalk_sampler_thread_assigned(thread, os), OK; }
static result destroyed(void *self, uint64_t thread) { return (void)self, seedwalk_sampler_thread_destroyed(thread), OK; }
static result thrown(void *self, uint64_t object) { return (void)self, (void)object, seedwalk_sampler_copy(EXCEPTION), OK; }

/* ---- the COM interface ---- */
static void *slots[128], *factory_slots[5];
static struct { void **table; } object = {slots}, factory = {factory_slots};

static result fine(void) { return OK; }
static uint32_t one(void) { return 1; }
static result query(void *self, const void *id, void **out) { return (void)id, *out = self, OK; }

static result create(void *self, void *outer, const void *id, void **out)
{
	(void)self, (void)outer, (void)id;
	for (int i = 0; i < 128; i++)
		slots[i] = (void *)fine;
	slots[0] = (void *)query, slots[1] = slots[2] = (void *)one;
	slots[3] = (void *)initialize, slots[4] = (void *)shut_down;
	slots[30] = (void *)destroyed, slots[31] = (void *)assigned, slots[54] = (void *)thrown;
	slots[80] = (void *)attach, slots[82] = (void *)detached, slots[97] = (void *)beside;
	return *out = &object, OK;
}

EXPORT result DllGetClassObject(const void *clsid, const void *id, void **out)
{
	(void)clsid, (void)id;
	factory_slots[0] = (void *)query, factory_slots[1] = factory_slots[2] = (void *)one;
	factory_slots[3] = (void *)create, factory_slots[4] = (void *)fine;
	return *out = &factory, OK;
}

EXPORT result DllCanUnloadNow(void) { return 1; }
