/* A profiler that is linked with libseedwalk.so as a vendor links it, for
 * clr_test.go: it opens a handle on a thread of its own while Initialize waits, scans
 * and commits, walks its own thread again and again, and does nothing to the
 * target. At the end it writes how often to the file WALKS. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "seedwalk.h"

typedef uint32_t hresult;
enum { OK = 0, SLOTS = 128, INITIALIZE = 3, SHUTDOWN = 4 };

static void *table[SLOTS], *object = table, *factory_table[5], *factory = factory_table;
static int ready, stop, walks;
static pthread_t sampler;

static int one_walk(seedwalk_handle h)
{
	static ucontext_t u;
	static seedwalk_frame frames[512];
	seedwalk_sample s = {.size = sizeof s, .layout = SEEDWALK_CONTEXT_UCONTEXT, .context = &u, .context_size = sizeof u};
	seedwalk_walk_request r = {.size = sizeof r, .room = 512, .sample = &s, .frames = frames};
	seedwalk_result out = {.size = sizeof out};
	getcontext(&u);
	s.address = (uint64_t)u.uc_mcontext.gregs[REG_RSP];
	s.stack = (const uint8_t *)s.address;
	s.length = 256;
	return seedwalk_walk(h, &r, &out) == SEEDWALK_OK && out.frames > 0;
}

static void *work(void *unused)
{
	seedwalk_handle h;
	int ok = seedwalk_open(NULL, &h) == SEEDWALK_OK;
	__atomic_store_n(&ready, ok ? 1 : -1, __ATOMIC_RELEASE);
	while (ok && !__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		ok = seedwalk_scan(h) == SEEDWALK_OK && seedwalk_commit(h) == SEEDWALK_OK;
		for (int i = 0; i < 100 && ok; i++, walks++)
			ok = one_walk(h);
		usleep(20000);
	}
	if (!ok)
		walks = -1;
	return unused;
}

static hresult initialize(void *self, void *unknown)
{
	(void)self, (void)unknown;
	if (pthread_create(&sampler, NULL, work, NULL) != 0)
		return 0x80004005u;
	while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		usleep(1000);
	return OK;
}

static hresult shut_down(void *self)
{
	(void)self;
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(sampler, NULL);
	const char *path = getenv("WALKS");
	FILE *f = path ? fopen(path, "w") : NULL;
	if (f) {
		fprintf(f, "%d\n", walks);
		fclose(f);
	}
	return OK;
}

static hresult fine(void *self) { return (void)self, OK; }

static hresult query(void *self, const void *id, void **out)
{
	(void)id;
	*out = self;
	return OK;
}

static hresult create(void *self, void *outer, const void *id, void **out)
{
	(void)self, (void)outer, (void)id;
	for (int i = 0; i < SLOTS; i++)
		table[i] = (void *)fine;
	table[0] = (void *)query;
	table[INITIALIZE] = (void *)initialize;
	table[SHUTDOWN] = (void *)shut_down;
	*out = &object;
	return OK;
}

__attribute__((visibility("default"))) hresult DllGetClassObject(const void *class_id, const void *id, void **out)
{
	(void)class_id, (void)id;
	factory_table[0] = (void *)query;
	factory_table[1] = factory_table[2] = factory_table[4] = (void *)fine;
	factory_table[3] = (void *)create;
	*out = &factory;
	return OK;
}
