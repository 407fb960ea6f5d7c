/* A profiler that makes scripted calls and says what they answer: the real side
 * of the conformance test of sim/conform, which writes the script and compares.
 * Conform.cs is the program it is loaded into.
 *
 * A line of the script, from the file CONFORM_SCRIPT:
 *
 *     NAME CALLER VERB TARGET FLAGS SEED STOP ANSWER
 *
 * CALLER says who makes the call and where: see the functions that call run().
 * VERB is dss (DoStackSnapshot), suspend or resume (the runtime), or detach (the
 * profiler). TARGET is a role that a thread of the program took, or "zero". STOP
 * is the callback, from 1, that returns ANSWER. Lines written to the file
 * CONFORM_OUT:
 *
 *     NAME HRESULT PATTERN SIZE COUNT
 *
 * PATTERN has M for a run of managed frames and U for each marker, "-" for no
 * callback; SIZE is the context's, bytes; COUNT is of callbacks.
 *
 * HRESULT is NO_ROLE if no thread took the role.
 *
 * Sources: dotnet/runtime src/coreclr/inc/corprof.idl (slots). */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler.h"

#ifdef _WIN32
static void short_sleep(void) { Sleep(1); }
static uint32_t own_tid(void) { return GetCurrentThreadId(); }
#else
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
static void short_sleep(void) { usleep(1000); }
static uint32_t own_tid(void) { return (uint32_t)syscall(SYS_gettid); }
#endif

#define METHOD(self, slot, T) ((T)(*(void ***)(self))[slot])
#define LOAD(v) __atomic_load_n(&(v), __ATOMIC_ACQUIRE)
#define STORE(v, x) __atomic_store_n(&(v), x, __ATOMIC_RELEASE)

enum { S_OK_ = 0, E_NOTIMPL_ = 0x80004001u, UNSAFE = 0x80131360u, IN_PROGRESS = 0x80131388u, NO_ROLE = 0xdeadu };
enum { CURRENT_THREAD_ID = 13, SET_EVENT_MASK = 16, DO_STACK_SNAPSHOT = 36, REQUEST_DETACH = 58, SUSPEND_RUNTIME = 97, RESUME_RUNTIME = 98 };
enum { CASES = 128, THREADS = 256, SEED_BYTES = 4096, CALLBACK_NAPS = 20000 };
/* Offsets in CONTEXT of x86-64. */
enum { RSP_ = 0x98, RBP_ = 0xa0, RIP_ = 0xf8 };

static void *info;
static int info_version;
static FILE *out;

/* The script. */
static struct step {
	char name[64], caller[16], verb[16], target[16], seed[16];
	uint32_t flags, stop, answer;
	int done;
} steps[CASES];
static int step_count;

static void read_script(void)
{
	FILE *f = fopen(getenv("CONFORM_SCRIPT"), "r");
	struct step *s = steps;
	while (f && step_count < CASES && fscanf(f, "%63s %15s %15s %15s %x %15s %u %x", s->name, s->caller, s->verb, s->target, &s->flags, s->seed, &s->stop, &s->answer) == 8)
		s++, step_count++;
	if (f)
		fclose(f);
}

/* Threads: what the CLR tells of them, and the roles they took. */
static struct thread {
	uint64_t id;
	uint32_t tid;
	uint64_t base; /* the end of its stack */
	char role[16];
} threads[THREADS];
static int thread_count;

static struct thread *thread_of(uint32_t tid)
{
	for (int i = LOAD(thread_count) - 1; i >= 0; i--)
		if (threads[i].tid == tid)
			return &threads[i];
	return NULL;
}

static struct thread *thread_as(const char *role)
{
	for (int i = LOAD(thread_count) - 1; i >= 0; i--)
		if (strcmp(threads[i].role, role) == 0)
			return &threads[i];
	return NULL;
}

/* One call of DoStackSnapshot. */
struct walk {
	uint32_t stop, answer, n, size;
	char pattern[64];
	uint8_t *keep; /* SEED_BYTES for the first frame's context, or NULL */
	int hold;      /* wait in the first callback for the sampler */
};

static void sample(const char *caller);

static hresult callback(uint64_t function, uint64_t ip, uint64_t frame_info, uint32_t size, uint8_t *context, void *client)
{
	(void)ip, (void)frame_info;
	struct walk *w = client;
	w->n++;
	char what = function ? 'M' : 'U';
	size_t length = strlen(w->pattern);
	if ((what == 'U' || !length || w->pattern[length - 1] != 'M') && length + 1 < sizeof w->pattern)
		w->pattern[length] = what;
	w->size = context ? size : 0;
	if (w->keep && w->n == 1 && context)
		memcpy(w->keep, context, size < SEED_BYTES ? size : SEED_BYTES);
	if (w->hold && w->n == 1)
		sample("busy");
	return w->n == w->stop ? w->answer : S_OK_;
}

typedef hresult (*snapshot_fn)(void *, uint64_t, void *, uint32_t, void *, uint8_t *, uint32_t);

static hresult snapshot(uint64_t thread, uint32_t flags, struct walk *w, uint8_t *seed)
{
	return METHOD(info, DO_STACK_SNAPSHOT, snapshot_fn)(info, thread, (void *)callback, flags, w, seed, seed ? SEED_BYTES : 0);
}

static void put(uint8_t *context, int offset, uint64_t v) { memcpy(context + offset, &v, sizeof v); }

static uint8_t held_context[SEED_BYTES]; /* of the target that the caller holds, or of the thread's own last walk */

/* Makes the seed of a name in buffer; NULL: none. */
static uint8_t *make_seed(const char *name, uint8_t *buffer)
{
	if (strcmp(name, "none") == 0)
		return NULL;
	memcpy(buffer, held_context, SEED_BYTES);
	if (strcmp(name, "zero") == 0)
		memset(buffer, 0, SEED_BYTES);
	else if (strcmp(name, "wild-ip") == 0)
		put(buffer, RIP_, 0x123456789a);
	else if (strcmp(name, "native-ip") == 0)
		put(buffer, RIP_, (uint64_t)(uintptr_t)&make_seed);
	else if (strcmp(name, "wild-sp") == 0) {
		put(buffer, RSP_, 0x123456789a8);
		put(buffer, RBP_, 0x123456789a8);
	} else if (strcmp(name, "other-sp") == 0) { /* memory, but no stack of the target's */
		static uint64_t elsewhere[4096];
		put(buffer, RSP_, (uint64_t)(uintptr_t)&elsewhere[2048]);
		put(buffer, RBP_, (uint64_t)(uintptr_t)&elsewhere[3072]);
	}
	return buffer; /* "own", "odd-ips": as it is */
}

static hresult runtime_call(int slot)
{
	return info_version < 10 ? E_NOTIMPL_ : METHOD(info, slot, hresult (*)(void *))(info);
}

/* Whether the target spins, and only the runtime can stop it. */
static int spins_freely(const struct step *s)
{
	return strcmp(s->target, "spin") == 0 && (strcmp(s->caller, "collecting") == 0 || strcmp(s->caller, "suspended") == 0 || strcmp(s->caller, "sampler") == 0);
}

static hresult do_step(struct step *s, struct walk *w)
{
	if (strcmp(s->verb, "suspend") == 0)
		return runtime_call(SUSPEND_RUNTIME);
	if (strcmp(s->verb, "resume") == 0)
		return runtime_call(RESUME_RUNTIME);
	if (strcmp(s->verb, "detach") == 0)
		return METHOD(info, REQUEST_DETACH, hresult (*)(void *, uint32_t))(info, 5000);
	static uint8_t buffer[SEED_BYTES]; /* no heap: a held thread may own its lock. No two calls have a seed at once */
	struct thread *t = thread_as(s->target);
	if (!t && strcmp(s->target, "zero") != 0)
		return NO_ROLE;
	uint8_t *seed = make_seed(s->seed, buffer);
	for (int i = 0; strcmp(s->seed, "odd-ips") == 0 && i < 31; i++) {
		uint64_t ip;
		memcpy(&ip, seed + RIP_, sizeof ip);
		put(seed, RIP_, ip + 1); /* the target stands in a short loop: some of these fault */
		snapshot(t ? t->id : 0, s->flags, w, seed);
	}
	hresult hr = snapshot(t ? t->id : 0, s->flags, w, seed);
	/* A thread that spins is stopped by a redirection, and tells the profiler so. That callback is a forbid-suspend
	 * region, and no suspension waits for its end: row 9 answers until then. */
	for (int i = 0; i < CALLBACK_NAPS && hr == UNSAFE && spins_freely(s); i++) {
		short_sleep();
		hr = snapshot(t->id, s->flags, w, seed);
	}
	return hr;
}

#ifdef _WIN32
/* The target is suspended: once, "held"; as often as Windows allows, so that the
 * CLR's own SuspendThread fails, "crowded"; with its sp at the end of its stack,
 * where all Frames lie below it, "moved". */
static void around_suspended(struct step *s, struct walk *w, hresult *hr, struct thread *t)
{
	HANDLE h = OpenThread(THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_SET_CONTEXT, FALSE, t->tid);
	CONTEXT *c = (CONTEXT *)held_context;
	int most = strcmp(s->caller, "crowded") == 0 ? MAXIMUM_SUSPEND_COUNT + 1 : 1, count = 0;
	int moves = strcmp(s->caller, "moved") == 0;
	c->ContextFlags = CONTEXT_FULL | CONTEXT_FLOATING_POINT;
	while (count < most && SuspendThread(h) != (DWORD)-1)
		count++;
	GetThreadContext(h, c);
	uint64_t sp = c->Rsp;
	if (moves) {
		c->Rsp = t->base - 256;
		SetThreadContext(h, c);
	}
	*hr = do_step(s, w);
	if (moves) {
		c->Rsp = sp;
		SetThreadContext(h, c);
	}
	while (count-- > 0)
		ResumeThread(h);
	CloseHandle(h);
}
#endif

static void around(struct step *s, struct walk *w, hresult *hr)
{
	if (strcmp(s->caller, "suspended") == 0) {
		while (runtime_call(SUSPEND_RUNTIME) == IN_PROGRESS)
			short_sleep();
		*hr = do_step(s, w);
		if (strcmp(s->verb, "resume") != 0)
			runtime_call(RESUME_RUNTIME);
		return;
	}
#ifdef _WIN32
	struct thread *t = thread_as(s->target);
	if (t && (strcmp(s->caller, "held") == 0 || strcmp(s->caller, "crowded") == 0 || strcmp(s->caller, "moved") == 0)) {
		around_suspended(s, w, hr, t);
		return;
	}
#endif
	*hr = do_step(s, w);
}

/* Makes every call that is the caller's, once. */
static void run(const char *caller)
{
	for (struct step *s = steps; s < steps + step_count; s++) {
		if (strcmp(s->caller, caller) != 0 || s->done)
			continue;
		s->done = 1;
		struct walk w = {.stop = s->stop, .answer = s->answer};
		hresult hr;
		around(s, &w, &hr);
		fprintf(out, "%s %08x %s %u %u\n", s->name, hr, w.pattern[0] ? w.pattern : "-", w.size, w.n);
		fflush(out);
	}
}

/* The sampler: a thread that never runs managed code, and works on request. */
static const char *wanted;

static void sampler_loop(void)
{
	for (;;) {
		const char *caller = LOAD(wanted);
		if (!caller) {
			short_sleep();
			continue;
		}
		run(caller);
		STORE(wanted, NULL);
	}
}

static void sample(const char *caller)
{
	STORE(wanted, caller);
	while (LOAD(wanted))
		short_sleep();
}

#ifdef _WIN32
static DWORD WINAPI sampler(void *unused)
{
	(void)unused;
	sampler_loop();
	return 0;
}
static int start_sampler(void) { return CreateThread(NULL, 0, sampler, NULL, 0, NULL) != NULL; }
#else
static void *sampler(void *unused)
{
	(void)unused;
	sampler_loop();
	return NULL;
}
static int start_sampler(void)
{
	pthread_t t;
	return pthread_create(&t, NULL, sampler, NULL) == 0;
}
#endif

/* What the program calls. */

static struct thread *add_thread(uint64_t id, uint32_t tid)
{
	int i = __atomic_fetch_add(&thread_count, 1, __ATOMIC_ACQ_REL);
	if (i >= THREADS)
		return NULL;
	threads[i].id = id, threads[i].tid = tid;
	return &threads[i];
}

EXPORT void conform_role(const char *role)
{
	struct thread *t = thread_of(own_tid());
	uint64_t id;
	/* .NET Core 2.0 does not tell of the finalizer's thread. */
	if (!t && METHOD(info, CURRENT_THREAD_ID, hresult (*)(void *, uint64_t *))(info, &id) == S_OK_)
		t = add_thread(id, own_tid());
	if (!t)
		return;
#ifdef _WIN32
	ULONG_PTR low, high;
	GetCurrentThreadStackLimits(&low, &high);
	t->base = high;
#endif
	snprintf(t->role, sizeof t->role, "%s", role);
}

static int over;
EXPORT void conform_sleep(void)
{
	while (!LOAD(over))
		short_sleep();
}
EXPORT void conform_end(void) { STORE(over, 1); }
EXPORT void conform_call(void (*f)(void))
{
	f();
	__asm__ volatile(""); /* no tail call: this frame is the unmanaged block */
}
EXPORT void conform_self(void) { run("pinvoke"); }
EXPORT void conform_sample(const char *caller) { sample(caller); }

/* The caller stays in a walk of its own while the sampler makes its calls. */
EXPORT void conform_busy(void)
{
	struct walk w = {.hold = 1};
	snapshot(0, 0, &w, NULL);
}

/* A suspension of the runtime that does not end: one thread waits in a callback, in
 * cooperative mode, while a second one collects and a third makes the calls. */
static int stage; /* 1: the first waits, 2: the second suspends the runtime, 3: the calls are made */

static void wait_stage(int n)
{
	while (LOAD(stage) != n)
		short_sleep();
}

EXPORT void conform_collecting(void) { wait_stage(1); }

EXPORT void conform_suspending(void)
{
	wait_stage(2);
	for (int i = 0; i < 200; i++)
		short_sleep(); /* RuntimeSuspendStarted comes before it has begun */
	run("suspending");
	STORE(stage, 3);
}

static uint32_t armed; /* the thread whose callbacks make calls */
EXPORT void conform_arm(int on) { STORE(armed, on ? own_tid() : 0); }
static int mine(void) { return LOAD(armed) == own_tid(); }

/* Callbacks. */

static hresult thread_assigned(void *self, uint64_t id, uint32_t tid)
{
	(void)self;
	add_thread(id, tid);
	return S_OK_;
}

static hresult object_allocated(void *self, uint64_t object, uint64_t class_id)
{
	(void)self, (void)object, (void)class_id;
	if (!mine())
		return S_OK_;
	struct walk w = {.keep = held_context};
	snapshot(0, 1, &w, NULL); /* a good seed for the calls that want one */
	run("allocation");
	if (!LOAD(stage)) {
		STORE(stage, 1);
		wait_stage(3);
	}
	return S_OK_;
}

static hresult suspend_started(void *self, int reason)
{
	(void)self, (void)reason;
	if (LOAD(stage) == 1)
		STORE(stage, 2);
	return S_OK_;
}

static hresult in_callback(const char *caller)
{
	if (mine())
		run(caller);
	return S_OK_;
}

static hresult exception_thrown(void *self, uint64_t object)
{
	(void)self, (void)object;
	return in_callback("thrown");
}

static hresult exception_search(void *self, uint64_t function)
{
	(void)self, (void)function;
	return in_callback("search");
}

static hresult exception_unwind(void *self, uint64_t function)
{
	(void)self, (void)function;
	return in_callback("unwind");
}

static hresult exception_finally(void *self, uint64_t function)
{
	(void)self, (void)function;
	return in_callback("finally");
}

static hresult exception_catcher(void *self, uint64_t function, uint64_t object)
{
	(void)self, (void)function, (void)object;
	return in_callback("catcher");
}

/* All threads have stopped, by this one. */
static hresult suspend_finished(void *self)
{
	(void)self;
	return in_callback("suspend-end");
}

/* This thread says of itself that it stops: it does before a collection of its own. */
static hresult thread_suspended(void *self, uint64_t id)
{
	(void)self;
	struct thread *t = thread_of(own_tid());
	if (mine() && t && t->id == id) {
		run("thread-suspend");
		sample("forbidden");
	}
	return S_OK_;
}

static hresult collection_started(void *self, int generations, int *collected, int reason)
{
	(void)self, (void)generations, (void)collected, (void)reason;
	if (mine()) {
		run("collector");
		sample("collecting");
	}
	return S_OK_;
}

static const struct {
	uint32_t a;
	uint16_t b, c;
	uint8_t d[8];
} iid_infos[] = {
	{0x2f1b5152, 0xc869, 0x40c9, {0xaa, 0x5f, 0x3a, 0xbe, 0x02, 0x6b, 0xd7, 0x20}}, /* ICorProfilerInfo10 */
	{0xb555ed4f, 0x452a, 0x4e54, {0x8b, 0x39, 0xb5, 0x36, 0x0b, 0xad, 0x32, 0xa0}}, /* ICorProfilerInfo3 */
};

static hresult initialize(void *self, void *unknown)
{
	(void)self;
	const char *mask = getenv("CONFORM_MASK"), *path = getenv("CONFORM_OUT");
	for (int i = 0; i < 2 && !info; i++)
		if (METHOD(unknown, 0, hresult (*)(void *, const void *, void **))(unknown, &iid_infos[i], &info) == S_OK_)
			info_version = i ? 3 : 10;
	out = path ? fopen(path, "w") : NULL;
	if (!info || !mask || !out)
		return 0x80004005u;
	read_script();
#ifdef _WIN32
	windows_ready();
#endif
	run("initialize");
	if (!start_sampler())
		return 0x80004005u;
	return METHOD(info, SET_EVENT_MASK, hresult (*)(void *, uint32_t))(info, (uint32_t)strtoul(mask, NULL, 16));
}

PROFILER(
	{3, initialize}, {31, thread_assigned}, {42, suspend_started}, {43, suspend_finished}, {47, thread_suspended}, {50, object_allocated}, {54, exception_thrown},
	{55, exception_search}, {62, exception_unwind}, {64, exception_finally}, {66, exception_catcher}, {73, collection_started})
