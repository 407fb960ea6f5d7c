/* capi/check_amd64.c: the first sample asks which callbacks a vendor forwards, while the runtime reports its
 * first thread and module. A callback in progress is no omission. */
#include "native.h"

#include "check_amd64.c"

static struct {
	uint32_t thread, module, returned;
} runtime;

void sw_problem(const char *what) { (void)what; }
int sw_threads_copy(struct sw_thread *out, int room) { return (void)out, (void)room, 0; }
int sw_thread_alive(uint64_t thread_id, uint64_t tid) { return (void)thread_id, (void)tid, 1; }
uint64_t sw_now_ns(void) { return 0; }
static int has_returned(void *word) { return (void)word, runtime.returned; }

/* A sleep is long: the callback has returned, and its counts are visible. */
void sw_sleep_us(unsigned us)
{
	(void)us;
	sim_wait(&runtime, sizeof runtime, "wait for the callback", has_returned, 0);
	sim_load32(&runtime.returned);
}

/* ICorProfilerInfo and its enumerations are objects with the methods that the product calls. */
static void *info_methods[ENUM_THREADS + 1], *thread_methods[ENUM_NEXT + 1], *module_methods[ENUM_NEXT + 1];
static void *of_info = info_methods, *of_threads = thread_methods, *of_modules = module_methods;
void *sw_info = &of_info;

static sw_hresult mask(void *self, uint32_t *out) { return (void)self, *out = SEEDWALK_SAMPLER_EVENTS, 0; }
static sw_hresult threads(void *self, void **out) { return (void)self, *out = &of_threads, 0; }
static sw_hresult modules(void *self, void **out) { return (void)self, *out = &of_modules, 0; }
static uint32_t release(void *self) { return (void)self, 0; }

static sw_hresult next(void *self, uint32_t room, uint64_t *out, uint32_t *n)
{
	(void)room;
	*n = sim_load32(self == &of_threads ? &runtime.thread : &runtime.module);
	*out = 7;
	return 0;
}

int world_threads(void) { return 2; }

UNSEEN void world_reset(void)
{
	info_methods[GET_EVENT_MASK] = mask;
	info_methods[ENUM_THREADS] = threads;
	info_methods[ENUM_MODULES] = modules;
	thread_methods[RELEASE] = module_methods[RELEASE] = release;
	thread_methods[ENUM_NEXT] = module_methods[ENUM_NEXT] = next;
	runtime.thread = runtime.module = runtime.returned = 0;
	sw_forwarded_created = sw_forwarded_assigned = sw_forwarded_loaded = 0;
	sim_watch(&runtime, sizeof runtime);
	sim_watch(&sw_forwarded_created, sizeof sw_forwarded_created);
	sim_watch(&sw_forwarded_assigned, sizeof sw_forwarded_assigned);
	sim_watch(&sw_forwarded_loaded, sizeof sw_forwarded_loaded);
}

static void forward(uint32_t *n) { __atomic_add_fetch(n, 1, __ATOMIC_RELEASE); }

void world_thread(int i)
{
	int all;
	if (i) { /* the runtime lists a thread and a module before it reports them */
		sim_store32(&runtime.thread, 1);
		forward(&sw_forwarded_created);
		forward(&sw_forwarded_assigned);
		sim_store32(&runtime.module, 1);
		forward(&sw_forwarded_loaded);
		sim_store32(&runtime.returned, 1);
		return;
	}
	sim_check(sw_check_forwarded(&all) == SEEDWALK_OK, "a callback in progress is an omission");
	sim_outcome(all ? "all" : "too early");
}

void world_end(void) {}
