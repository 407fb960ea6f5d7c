/* A sampling profiler with a protocol of its own, by the low-level calls of seedwalk.h: x86-64 Linux. It suspends
 * the runtime, lets one thread copy itself in a signal handler, and calls the CLR without a seed. The numbers of
 * the steps are those of docs/embedding.md. At the end it writes to the file OWN_PROTOCOL_OUT how many samples it has.
 *
 *     gcc -O2 -shared -fPIC -o libown.so own_protocol_linux.c libseedwalk.a -lpthread */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "seedwalk.h"

typedef uint32_t result; /* HRESULT */
enum { OK = 0, FAIL = (int)0x80004005, EVENTS = 0x10000224 /* module loads, JIT, threads, stack snapshot */ };
enum { FROM_IP = 7, SET_EVENT_MASK = 16, SNAPSHOT = 36, SUSPEND = 97, RESUME = 98 }; /* slots of ICorProfilerInfo10 */
#define METHOD(object, slot, ...) ((result(*)(void *, ##__VA_ARGS__))(*(void ***)(object))[slot])
static void *info;
static seedwalk_handle handle;
static atomic_int opened, armed, stopping, stopped, code_changed = 1;

/* ---- threads: callbacks write them and the sampler reads them, without a lock ---- */
enum { THREADS = 1024 };
static struct thread {
	_Atomic uint64_t id; /* ThreadID; 0: free */
	atomic_long tid;     /* 0: do not sample it */
	uint64_t low, high;
} threads[THREADS];
static atomic_int window; /* a thread may be in use by the sampler */

static result assigned(void *self, uint64_t id, uint32_t os_thread) /* on the thread itself, in cooperative mode: no lock */
{
	pthread_attr_t attr;
	void *low;
	size_t size;
	int i = 0;
	while (i < THREADS && !atomic_compare_exchange_strong(&threads[i].id, &(uint64_t){0}, id))
		i++;
	if (i == THREADS || pthread_getattr_np(pthread_self(), &attr))
		return (result)FAIL;
	pthread_attr_getstack(&attr, &low, &size);
	pthread_attr_destroy(&attr);
	threads[i].low = (uint64_t)low, threads[i].high = (uint64_t)low + size, threads[i].tid = syscall(SYS_gettid); /* in this order */
	return (void)self, (void)os_thread, OK;
}

static result destroyed(void *self, uint64_t id) /* may wait: a walk of a thread that is gone ends the process */
{
	for (struct thread *t = threads; t < threads + THREADS; t++)
		if (t->id == id) {
			for (t->tid = 0; window;)
				usleep(10);
			t->id = 0;
		}
	return (void)self, OK;
}

/* ---- step 4: a sample ---- */
enum { SIGNAL = 5 /* above SIGRTMIN */, RED_ZONE = 128, REPORTED = 4096, TRIES = 500, STEP_US = 50, IDLE = 0, ASKED, COPYING, COPIED };
static uint64_t from_ip(void *client, uint64_t ip)
{
	uint64_t function = 0;
	return (void)client, METHOD(info, FROM_IP, uint64_t, uint64_t *)(info, ip, &function) ? 0 : function;
}

static atomic_int state;
static atomic_long asked; /* the number of the thread that is asked to copy itself */
static ucontext_t context;
static uint8_t stack[1 << 18];
static seedwalk_sample sample = {.size = sizeof sample, .layout = SEEDWALK_CONTEXT_UCONTEXT, .context = &context, .context_size = sizeof context, .stack = stack, .from_ip = from_ip};
static seedwalk_snapshot_frame reported[REPORTED];
static int count; /* of reported */
static result answer;

static void on_signal(int number, siginfo_t *why, void *registers) /* only copies */
{
	int saved = errno;
	if (asked == syscall(SYS_gettid) && atomic_compare_exchange_strong(&state, &(int){ASKED}, COPYING)) {
		context = *(ucontext_t *)registers;
		uint64_t sp = (uint64_t)context.uc_mcontext.gregs[REG_RSP];
		sample.address = sp - RED_ZONE;
		sample.length = sp > sample.low && sp < sample.high ? sample.high - sample.address : 0;
		if (sample.length > sizeof stack)
			sample.length = sizeof stack;
		memcpy(stack, (const void *)sample.address, sample.length);
		state = COPIED;
	}
	errno = saved, (void)number, (void)why;
}

static result record(uint64_t function, uint64_t ip, uint64_t frame, uint32_t size, void *registers, void *client) /* step 6 */
{
	(void)ip, (void)frame, (void)size, (void)client;
	return count == REPORTED ? 1 : (seedwalk_record(&reported[count++], function, registers), OK);
}

/* take samples a thread, and returns whether there is a sample. No heap, no lock, no output in here. */
static int take(struct thread *t)
{
	if (state == COPYING || METHOD(info, SUSPEND)(info)) /* a collection is running: next time */
		return 0;
	/* The window opens only here: SuspendRuntime waits for the ThreadStore lock, whose owner may be in
	 * ThreadDestroyed, which waits for the window. */
	window = 1;
	state = IDLE;     /* a late handler copies nothing */
	asked = t->tid; /* if it is not 0, the thread's entry stays while the window is open */
	sample.thread = t->id, sample.low = t->low, sample.high = t->high, count = 0;
	state = ASKED;
	/* Not pthread_kill: a native thread may have ended long before its ThreadDestroyed. */
	if (asked && syscall(SYS_tgkill, getpid(), (long)asked, SIGRTMIN + SIGNAL) == 0)
		for (int i = 0; i < TRIES && state != COPIED; i++)
			usleep(STEP_US);
	atomic_compare_exchange_strong(&state, &(int){ASKED}, IDLE); /* no answer */
	if (state == COPIED)
		answer = METHOD(info, SNAPSHOT, uint64_t, void *, uint32_t, void *, void *, uint32_t)(info, sample.thread, (void *)record, 1, 0, 0, 0);
	window = 0;
	METHOD(info, RESUME)(info);
	return state == COPIED;
}

/* ---- step 7: merging, when nothing is suspended ---- */
static long samples, complete, frames, unmanaged;

static void merge(void)
{
	static seedwalk_frame all[16384];
	seedwalk_merge_request q = {.size = sizeof q, .room = 16384, .sample = &sample, .frames = all, .reported = reported, .count = count, .hresult = answer};
	seedwalk_result r = {.size = sizeof r};
	if (seedwalk_merge(handle, &q, &r))
		return;
	if (r.rescan)
		code_changed = 1;
	samples++, complete += !r.gap, frames += r.frames;
	for (int i = 0; i < r.frames; i++) /* your code goes here */
		unmanaged += all[i].kind == SEEDWALK_NATIVE;
}

static void *life(void *nothing)
{
	opened = seedwalk_open(0, &handle) ? -1 : 1; /* step 1 */
	for (int turn = 0; !stopping; turn = (turn + 1) % THREADS) {
		if (turn == 0 || threads[turn].tid)
			usleep(1000);
		if (!armed || !threads[turn].tid)
			continue;
		if (atomic_exchange(&code_changed, 0) && seedwalk_scan(handle)) /* step 2 */
			code_changed = 1;
		seedwalk_commit(handle); /* steps 2 and 8 */
		if (take(threads + turn))
			merge();
	}
	seedwalk_close(handle);
	return atomic_store(&stopped, 1), nothing;
}

/* ---- called by the CLR ---- */
static result fine(void) { return OK; }
static uint32_t one(void) { return 1; }
static result code_came(void) { return atomic_store(&code_changed, 1), OK; } /* only noted */
static result query(void *self, const void *id, void **out) { return (void)id, *out = self, OK; }

static result initialize(void *self, void *unknown)
{
	static const uint8_t info10[16] = {0x52, 0x51, 0x1b, 0x2f, 0x69, 0xc8, 0xc9, 0x40, 0xaa, 0x5f, 0x3a, 0xbe, 0x02, 0x6b, 0xd7, 0x20};
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART}; /* no SA_ONSTACK: profiler/host/capture_linux.c */
	pthread_t thread;
	sigfillset(&action.sa_mask);
	if (METHOD(unknown, 0, const void *, void **)(unknown, info10, &info) || pthread_create(&thread, 0, life, 0))
		return (result)FAIL;
	while (!opened) /* else the runtime would continue with Go's signal handlers */
		usleep(1000);
	armed = opened > 0 && !sigaction(SIGRTMIN + SIGNAL, &action, 0) && !METHOD(info, SET_EVENT_MASK, uint32_t)(info, EVENTS);
	return (void)self, armed ? OK : (result)FAIL;
}

static result shut_down(void *self)
{
	const char *path = getenv("OWN_PROTOCOL_OUT");
	stopping = 1;
	for (int ms = 0; !stopped && ms < 3000; ms++)
		usleep(1000);
	FILE *f = path ? fopen(path, "w") : 0;
	if (f)
		fprintf(f, "samples %ld complete %ld frames %ld unmanaged %ld\n", samples, complete, frames, unmanaged), fclose(f);
	return (void)self, OK;
}

static void *slots[128] = {[0] = query, [1 ... 2] = one, [3] = initialize, [4] = shut_down, [5 ... 13] = fine, [14] = code_came, [15 ... 23] = fine, [24] = code_came,
			   [25 ... 29] = fine, [30] = destroyed, [31] = assigned, [32 ... 92] = fine, [93] = code_came, [94 ... 127] = fine}, *object = slots;
static result create(void *self, void *outer, const void *id, void **out) { return (void)self, (void)outer, (void)id, *out = &object, OK; }
static void *factory_slots[5] = {query, one, one, create, fine}, *factory = factory_slots;
result DllGetClassObject(const void *clsid, const void *id, void **out) { return (void)clsid, (void)id, *out = &factory, OK; }
result DllCanUnloadNow(void) { return 1; } /* Go stays */
