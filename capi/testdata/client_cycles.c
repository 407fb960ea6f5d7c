/* A profiler that loads the client library late, samples, closes it, unloads it, and so on: CYCLES times, after
 * CYCLES_WAIT milliseconds. It writes to CYCLES_OUT how many cycles gave stacks, and how many of these were
 * complete. At the start of a program, it makes the runtime unload it once its thread runs. If it is attached, it
 * detaches itself at the end. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../profiler/testdata/profiler.h"
#include "seedwalk.h"

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
		hresult (*detach)(void *, uint32_t) = (hresult(*)(void *, uint32_t))(*(void ***)info)[REQUEST_DETACH];
		detach(info, DETACH_MS);
	}
	return nothing;
}

static hresult begin(void)
{
	pthread_t t;
	pthread_create(&t, 0, life, 0);
	return (hresult)CANCEL_ACTIVATION;
}

static hresult attach(void *self, void *given)
{
	(void)self;
	info = given, stacks = whole = 0;
	begin();
	return 0;
}

PROFILER({3, begin}, {80, attach})
