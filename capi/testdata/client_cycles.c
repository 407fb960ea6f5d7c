/* A profiler that loads the client library late, samples, closes it, unloads it, and so on: CYCLES times, after
 * CYCLES_WAIT milliseconds. It writes to CYCLES_OUT how many cycles gave stacks, and how many of these were
 * complete. At the start of a program, it makes the runtime unload it once its thread runs. If it is attached, it
 * detaches itself at the end. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "seedwalk.h"

typedef uint32_t result;
enum { CANCEL_ACTIVATION = (int)0x80131375, REQUEST_DETACH = 58, DETACH_MS = 10, ENOUGH = 20, STEP_US = 5000, STEPS = 4000 };

static long stacks, whole;
static void *info; /* of InitializeForAttach */

static void on_stack(void *client, const seedwalk_stack *s)
{
	(void)client;
	stacks++, whole += !s->gap;
}

/* cycle returns 1 if it got enough stacks, and every call answered as it should. */
static int cycle(const char *path)
{
	seedwalk_sampler_request q = {.size = sizeof q, .on_stack = on_stack};
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return fprintf(stderr, "%s\n", dlerror()), 0;
	int (*open)(const void *) = (int (*)(const void *))dlsym(library, "seedwalk_sampler_open");
	int (*close)(void) = (int (*)(void))dlsym(library, "seedwalk_sampler_close");
	int (*sample)(const void *, void *) = (int (*)(const void *, void *))dlsym(library, "seedwalk_sampler_sample");
	long before = stacks;
	int e = open(0), again = open(0);
	for (int i = 0; i < STEPS && !e && stacks - before < ENOUGH; i++) {
		e = sample(&q, 0);
		usleep(STEP_US);
	}
	int c = close(), late = sample(&q, 0);
	dlclose(library);
	if (e || again != SEEDWALK_SECOND || c || late != SEEDWALK_NOT_OPEN)
		fprintf(stderr, "sample %d, open again %d, close %d, sample after it %d\n", e, again, c, late);
	return !e && again == SEEDWALK_SECOND && !c && late == SEEDWALK_NOT_OPEN && stacks - before >= ENOUGH;
}

static int number(const char *name) { return getenv(name) ? atoi(getenv(name)) : 0; }

static void *life(void *nothing)
{
	int all = number("CYCLES"), good = 0;
	usleep((useconds_t)number("CYCLES_WAIT") * 1000);
	for (int i = 0; i < all; i++)
		good += cycle(getenv("CLIENT_LIBRARY"));
	FILE *f = fopen(getenv("CYCLES_OUT"), "a");
	if (f) {
		fprintf(f, "good %d of %d stacks %ld whole %ld\n", good, all, stacks, whole);
		fclose(f);
	}
	if (info) {
		result (*detach)(void *, uint32_t) = (result(*)(void *, uint32_t))(*(void ***)info)[REQUEST_DETACH];
		detach(info, DETACH_MS);
	}
	return nothing;
}

static result begin(void)
{
	pthread_t t;
	pthread_create(&t, 0, life, 0);
	return (result)CANCEL_ACTIVATION;
}

static result attach(void *self, void *given)
{
	(void)self;
	info = given, stacks = whole = 0;
	begin();
	return 0;
}

static void *slots[128];
static struct { void **table; } object = {slots};
static result fine(void) { return 0; }
static uint32_t one(void) { return 1; }
static result query(void *self, const void *id, void **out) { return (void)id, *out = self, 0; }
static result create(void *self, void *outer, const void *id, void **out) { return (void)self, (void)outer, (void)id, *out = &object, 0; }

result DllGetClassObject(const void *clsid, const void *id, void **out)
{
	static void *methods[5];
	static struct { void **table; } factory = {methods};
	(void)clsid, (void)id;
	for (int i = 0; i < 128; i++)
		slots[i] = (void *)fine;
	slots[0] = methods[0] = (void *)query, slots[1] = slots[2] = methods[1] = methods[2] = (void *)one;
	slots[3] = (void *)begin, slots[80] = (void *)attach, methods[3] = (void *)create, methods[4] = (void *)fine;
	return *out = &factory, 0;
}

result DllCanUnloadNow(void) { return 1; }
