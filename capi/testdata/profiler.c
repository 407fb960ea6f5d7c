/* A profiler that is linked with the library as a vendor links it, for linux_test.go: it
 * opens a handle on a thread of its own while Initialize waits, scans and commits,
 * walks its own thread again and again, and does nothing to the target. It has handlers
 * of its own for SIGPROF and SIGSEGV, the latter before the runtime's, to which it
 * passes on. At the end it writes to the file WALKS how often it has walked, and whether
 * its handlers were in place still.
 *
 * EARLY: the handlers are set by a constructor before Go's start. OPENED: the library,
 * which is the file LIBRARY, is opened by Initialize when they are set. REFUSED:
 * Initialize calls the sampler wrongly and fails, so that the runtime unloads it all. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "../../profiler/testdata/profiler.h"
#include "seedwalk.h"

enum { OK = 0, INITIALIZE = 3, SHUTDOWN = 4 };

static int ready, stop, walks;
static pthread_t sampler;

#ifdef OPENED
static int (*open_)(const seedwalk_options *, seedwalk_handle *), (*scan_)(seedwalk_handle), (*commit_)(seedwalk_handle);
static int (*walk_)(seedwalk_handle, seedwalk_walk_request *, seedwalk_result *);
static int load(void)
{
	void *lib = dlopen(getenv("LIBRARY"), RTLD_NOW);
	if (!lib)
		return 0;
	*(void **)&open_ = dlsym(lib, "seedwalk_open");
	*(void **)&scan_ = dlsym(lib, "seedwalk_scan");
	*(void **)&commit_ = dlsym(lib, "seedwalk_commit");
	*(void **)&walk_ = dlsym(lib, "seedwalk_walk");
	return open_ && scan_ && commit_ && walk_;
}
#define seedwalk_open open_
#define seedwalk_scan scan_
#define seedwalk_commit commit_
#define seedwalk_walk walk_
#else
static int load(void) { return 1; }
#endif

static struct sigaction runtimes; /* for SIGSEGV, before ours */
static int faults, ticks;

static void on_fault(int number, siginfo_t *why, void *context)
{
	__atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
	runtimes.sa_sigaction(number, why, context);
}

static void on_tick(int number) { (void)number, __atomic_fetch_add(&ticks, 1, __ATOMIC_RELAXED); }

static void set_handlers(void)
{
	struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART}, fault;
	sigaction(SIGPROF, &tick, NULL);
	sigaction(SIGSEGV, NULL, &runtimes);
	fault = runtimes;
	fault.sa_sigaction = on_fault;
	sigaction(SIGSEGV, &fault, NULL);
}

static int handlers_are_ours(void)
{
	struct sigaction tick, fault;
	sigaction(SIGPROF, NULL, &tick);
	sigaction(SIGSEGV, NULL, &fault);
	raise(SIGPROF);
	return tick.sa_handler == on_tick && tick.sa_flags == (int)(SA_RESTART | 0x04000000) /* SA_RESTORER */
		&& fault.sa_sigaction == on_fault && fault.sa_flags == runtimes.sa_flags && ticks > 0 && faults > 0;
}

#ifdef EARLY
__attribute__((constructor(102))) static void early(void) { set_handlers(); }
#endif

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
	int ok = load() && seedwalk_open(NULL, &h) == SEEDWALK_OK;
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
#ifdef REFUSED
	return seedwalk_sampler_open(NULL) == SEEDWALK_BAD_ARGUMENT ? 0x80004005u : OK;
#endif
#ifndef EARLY
	set_handlers();
#endif
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
		fprintf(f, "%d walks, handlers %s\n", walks, handlers_are_ours() ? "in place" : "GONE");
		fclose(f);
	}
	return OK;
}

PROFILER({INITIALIZE, initialize}, {SHUTDOWN, shut_down})
