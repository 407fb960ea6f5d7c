/* The COM interface of the profiler: DllGetClassObject, a class factory, and one object that implements
 * every ICorProfilerCallback up to 11. Callbacks run on application threads, so most of them only record
 * the event. Five callbacks wait. Initialize waits up to 20 s for the sampler's start. ModuleUnloadStarted
 * waits up to 1 s, while the sampler resolves names. Shutdown waits up to 3 s for the sampler's end.
 * ThreadDestroyed and ThreadAssignedToOSThread wait, without a limit, while the sampler walks their thread. */
#include "callback.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"

enum { S_OK_ = 0, E_NOINTERFACE_ = 0x80004002u, CLASS_E_NOAGGREGATION_ = 0x80040110u, E_FAIL_ = 0x80004005u };
enum { CALLBACK_SLOTS = 128 };
enum { SET_EVENT_MASK = 16 };
enum {
	MONITOR_MODULE_LOADS = 0x4,
	MONITOR_JIT_COMPILATION = 0x20,
	MONITOR_THREADS = 0x200,
	ENABLE_STACK_SNAPSHOT = 0x10000000,
};

static const struct sw_guid iid_unknown = {0x00000000, 0x0000, 0x0000, {0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x46}};
static const struct sw_guid iid_factory = {0x00000001, 0x0000, 0x0000, {0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x46}};
/* ICorProfilerCallback, then 2 to 11. */
static const struct sw_guid iid_callbacks[] = {
	{0x176fbed1, 0xa55c, 0x4796, {0x98, 0xca, 0xa9, 0xda, 0x0e, 0xf8, 0x83, 0xe7}},
	{0x8a8cc829, 0xccf2, 0x49fe, {0xbb, 0xae, 0x0f, 0x02, 0x22, 0x28, 0x07, 0x1a}},
	{0x4fd2ed52, 0x7731, 0x4b8d, {0x94, 0x69, 0x03, 0xd2, 0xcc, 0x30, 0x86, 0xc5}},
	{0x7b63b2e3, 0x107d, 0x4d48, {0xb2, 0xf6, 0xf6, 0x1e, 0x22, 0x94, 0x70, 0xd2}},
	{0x8dfba405, 0x8c9f, 0x45f8, {0xbf, 0xfa, 0x83, 0xb1, 0x4c, 0xef, 0x78, 0xb5}},
	{0xfc13df4b, 0x4448, 0x4f4f, {0x95, 0x0c, 0xba, 0x8d, 0x19, 0xd0, 0x0c, 0x36}},
	{0xf76a2dba, 0x1d52, 0x4539, {0x86, 0x6c, 0x2a, 0xa5, 0x18, 0xf9, 0xef, 0xc3}},
	{0x5bed9b15, 0xc079, 0x4d47, {0xbf, 0xe2, 0x21, 0x5a, 0x14, 0x0c, 0x07, 0xe0}},
	{0x27583ec3, 0xc8f5, 0x482f, {0x80, 0x52, 0x19, 0x4b, 0x8c, 0xe4, 0x70, 0x5a}},
	{0xcec5b60e, 0xc69c, 0x495f, {0x87, 0xf6, 0x84, 0xd2, 0x8e, 0xe1, 0x6f, 0xfb}},
	{0x42350846, 0xaaed, 0x47f7, {0xb1, 0x28, 0xfd, 0x0c, 0x98, 0x88, 0x1c, 0xde}},
};
static int ready, done, armed;

int sw_armed(void) { return __atomic_load_n(&armed, __ATOMIC_ACQUIRE); }
void sw_sampler_ready(void) { __atomic_store_n(&ready, 1, __ATOMIC_RELEASE); }
void sw_sampler_done(void) { __atomic_store_n(&done, 1, __ATOMIC_RELEASE); }

/* Prints what is wrong and the remedy on the standard error. It also creates an empty file at
 * the path in SEEDWALK_REFUSED, by which the tool knows that the user has seen the reason. */
static void complain(const char *what, const char *remedy)
{
	fprintf(stderr, "seedwalk: %s; %s\n", what, remedy);
	const char *mark = sw_environment("SEEDWALK_REFUSED");
	FILE *f = mark ? fopen(mark, "w") : NULL;
	if (f)
		fclose(f);
}

static int env_int(const char *name, int fallback)
{
	const char *v = sw_environment(name);
	return v && atoi(v) > 0 ? atoi(v) : fallback;
}

/* The sampler: the only thread that enters Go. */
static void sampler(void)
{
	swgoSampler();
	sw_sampler_done();
}

static void too_old(const char *why)
{
	char what[160], remedy[64];
	snprintf(what, sizeof what, "this runtime is too old: %s", why);
	snprintf(remedy, sizeof remedy, "use %s or later", sw_least_clr);
	complain(what, remedy);
}

/* A failure here must leave the target running as if no profiler were set: the CLR makes no further
 * calls to a profiler that returns an error. */
static sw_hresult setup(void *unknown)
{
	if (!sw_environment("SEEDWALK_SOCKET"))
		return E_FAIL_;
	if (!sw_get_info(unknown)) {
		too_old("it has no ICorProfilerInfo3");
		return E_FAIL_;
	}
	if (sw_info_version < sw_least_info) {
		too_old(sw_least_why);
		return E_FAIL_;
	}
	uint32_t mask = MONITOR_MODULE_LOADS | MONITOR_JIT_COMPILATION | MONITOR_THREADS | ENABLE_STACK_SNAPSHOT;
	if (SW_METHOD(sw_info, SET_EVENT_MASK, sw_hresult (*)(void *, uint32_t))(sw_info, mask)) {
		complain("the runtime refused the event mask", "is another profiler attached?");
		return E_FAIL_;
	}
	int err = sw_start_sampler(sampler);
	int started = err == 0 && sw_wait_flag(&ready, 1, 20000);
	sw_go_started(); /* the Go runtime has started by now, or never will */
	if (!started) {
		complain("the sampler thread did not start", err ? sw_error_text(err) : "no answer in 20 s");
		return E_FAIL_;
	}
	err = sw_window_init((size_t)env_int("SEEDWALK_STACK_BYTES", 1 << 20));
	if (err) {
		complain("cannot get ready to sample", sw_error_text(err));
		return E_FAIL_;
	}
	return S_OK_;
}

/* Two samplers would suspend each other forever, so only the first runtime of a process is sampled. */
static sw_hresult initialize(void *self, void *unknown)
{
	(void)self;
	static int taken;
	if (__atomic_exchange_n(&taken, 1, __ATOMIC_SEQ_CST)) {
		complain("a second runtime in this process is not sampled", "only the first runtime of a process can be sampled");
		return E_FAIL_;
	}
#ifdef _WIN32
	if (sw_environment("SEEDWALK_EVENTS")) { /* the tool samples from outside; this library only copies stacks at events */
		sw_sampler_done();
		return sw_events_begin(self, unknown);
	}
#endif
	sw_hresult hr = setup(unknown);
	__atomic_store_n(&armed, hr == S_OK_ ? 1 : -1, __ATOMIC_RELEASE);
	return hr;
}

static sw_hresult shutdown_(void *self)
{
	(void)self;
#ifdef _WIN32
	sw_events_end();
#endif
	sw_stop();
	sw_wait_flag(&done, 1, 3000);
	return S_OK_;
}

static sw_hresult module_load_finished(void *self, uint64_t module, sw_hresult status)
{
	(void)self, (void)status;
	sw_event_push(SW_EVENT_MODULE_LOAD, module);
	return S_OK_;
}

static sw_hresult module_unload_started(void *self, uint64_t module)
{
	(void)self, (void)module;
	sw_unload();
	return S_OK_;
}

static sw_hresult jit_finished(void *self, uint64_t function, sw_hresult status, int safe)
{
	(void)self, (void)status, (void)safe;
	sw_event_push(SW_EVENT_JIT, function);
	return S_OK_;
}

static sw_hresult dynamic_finished(void *self, uint64_t function, sw_hresult status, int safe)
{
	return jit_finished(self, function, status, safe);
}

static sw_hresult dynamic_unloaded(void *self, uint64_t function)
{
	(void)self;
	sw_event_push(SW_EVENT_JIT, function); /* its code's memory may be reused */
	return S_OK_;
}

static sw_hresult thread_created(void *self, uint64_t thread)
{
	(void)self;
	sw_thread_created(thread);
	return S_OK_;
}

static sw_hresult thread_destroyed(void *self, uint64_t thread)
{
	(void)self;
	sw_thread_destroyed(thread);
	return S_OK_;
}

static sw_hresult thread_assigned(void *self, uint64_t thread, uint32_t os_thread)
{
	(void)self;
	sw_thread_assigned(thread, os_thread);
	return S_OK_;
}

static sw_hresult thread_renamed(void *self, uint64_t thread, uint32_t units, const uint16_t *name)
{
	(void)self;
	sw_thread_renamed(thread, units, name);
	return S_OK_;
}

/* Beside another profiler, the CLR accepts only a profiler that wants notifications only. */
static sw_hresult notification_only(void *self, int *only)
{
	(void)self;
	*only = sw_environment("SEEDWALK_BESIDE") != NULL;
	return S_OK_;
}

static sw_hresult answer_ok(void *self)
{
	(void)self;
	return S_OK_;
}

static uint32_t count_ref(void *self)
{
	(void)self;
	return 1; /* one object for the lifetime of the process */
}

static int is(const void *a, const struct sw_guid *b) { return memcmp(a, b, sizeof *b) == 0; }

static sw_hresult query_callback(void *self, const void *id, void **out)
{
	int known = is(id, &iid_unknown);
	for (size_t i = 0; i < sizeof iid_callbacks / sizeof *iid_callbacks; i++)
		known |= is(id, &iid_callbacks[i]);
	*out = known ? self : NULL;
	return known ? S_OK_ : E_NOINTERFACE_;
}

static void *callback_table[CALLBACK_SLOTS];
static struct {
	void **table;
} callback_object = {callback_table};

static const struct {
	int slot;
	void *method;
} callbacks[] = {
	{0, query_callback}, {1, count_ref}, {2, count_ref}, {3, initialize}, {4, shutdown_},
	{14, module_load_finished}, {15, module_unload_started}, {24, jit_finished},
	{29, thread_created}, {30, thread_destroyed}, {31, thread_assigned}, {72, thread_renamed},
	{93, dynamic_finished}, {94, dynamic_unloaded}, {97, notification_only},
};

static sw_hresult create_instance(void *self, void *outer, const void *id, void **out)
{
	(void)self;
	*out = NULL;
	if (outer)
		return CLASS_E_NOAGGREGATION_;
	for (int i = 0; i < CALLBACK_SLOTS; i++)
		callback_table[i] = answer_ok;
	for (size_t i = 0; i < sizeof callbacks / sizeof *callbacks; i++)
		callback_table[callbacks[i].slot] = callbacks[i].method;
#ifdef _WIN32
	callback_table[95] = sw_delivered; /* requested in sw_events_begin only */
#endif
	return query_callback(&callback_object, id, out);
}

static sw_hresult query_factory(void *self, const void *id, void **out)
{
	int known = is(id, &iid_unknown) || is(id, &iid_factory);
	*out = known ? self : NULL;
	return known ? S_OK_ : E_NOINTERFACE_;
}

static sw_hresult lock_server(void *self, int lock)
{
	(void)self, (void)lock;
	return S_OK_;
}

static void *factory_table[] = {query_factory, count_ref, count_ref, create_instance, lock_server};
static struct {
	void **table;
} factory_object = {factory_table};

SW_EXPORT sw_hresult DllGetClassObject(const void *class_id, const void *id, void **out)
{
	(void)class_id; /* any CLSID is ours: the path names the library */
	return query_factory(&factory_object, id, out);
}

SW_EXPORT sw_hresult DllCanUnloadNow(void)
{
	return 1; /* S_FALSE: Go cannot be unloaded */
}
