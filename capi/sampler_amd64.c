/* The sampler's C interface. Code on the CLR's threads stays in here and in profiler/host;
 * seedwalk_sampler_sample checks its caller before it enters Go. */
#include "sampler.h"

#include "_cgo_export.h"

_Static_assert((int)SW_STACKS >= (int)SW_SLOTS, "a round fits");

enum { CLOSED, OPENING, OPEN, ENDED };
static uint32_t state;
static uint64_t opener;    /* the thread that opened, which is the CLR's */
static uint64_t inside;    /* the thread that is sampling, 0: none */
static uint32_t looking;   /* samples until the vendor's forwarding is checked again */
static uint32_t beginning; /* Go's side has been asked to start */
static int begun;          /* Go's side has started */
static int next_stack;     /* the next stack for seedwalk_sampler_next */
seedwalk_stack sw_stacks[SW_STACKS];
int sw_stack_count;
char sw_stack_names[SW_STACKS][64];

/* Close writes state and then reads inside. Enter writes inside and then reads state. All four operations are
 * sequentially consistent. With an acquire load of state, a closed sampler could sample (see sim/native). */
int sw_sampler_is_open(void) { return __atomic_load_n(&state, __ATOMIC_SEQ_CST) == OPEN; }

/* Runs on a thread of its own: the caller's belongs to the CLR and never enters Go. */
static void begin(void)
{
	swgoSamplerBegin();
	__atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
}

enum { LONGEST_START_MS = 20000, LONGEST_ROUND_MS = 3000, STACK_BYTES = 1 << 20, MOST_STACK_BYTES = 1 << 28 };

/* Starts Go's side, which restores the signal handlers that Go's start has replaced. This comes before any
 * refusal: a program that continues without its profiler would crash because of them. */
static int go_begins(void)
{
	uint32_t no = 0;
	int err = 0;
	if (__atomic_compare_exchange_n(&beginning, &no, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) && (err = sw_start_sampler(begin)))
		__atomic_store_n(&beginning, 0, __ATOMIC_SEQ_CST);
	if (!err && sw_wait_flag(&begun, 1, LONGEST_START_MS))
		return SEEDWALK_OK;
	sw_problem(err ? sw_error_text(err) : "the Go runtime has not started in 20 s");
	return SEEDWALK_SYSTEM;
}

static int start(const seedwalk_sampler_options *o)
{
	if (!sw_get_info(o->info)) {
		sw_problem("the runtime has no ICorProfilerInfo3");
		return SEEDWALK_OLD_RUNTIME;
	}
	if (sw_info_version < sw_least_info) {
		sw_problem(sw_least_why);
		return SEEDWALK_OLD_RUNTIME;
	}
	size_t bytes = o->stack_bytes ? (size_t)o->stack_bytes : STACK_BYTES;
	int err = sw_window_init(bytes);
	err = err ? err : sw_copies_init(bytes);
	if (err)
		sw_problem(sw_error_text(err));
	return err ? SEEDWALK_SYSTEM : SEEDWALK_OK;
}

static int opened(const seedwalk_sampler_options *options)
{
	seedwalk_sampler_options o;
	int err = go_begins();
	err = err ? err : sw_sized(&o, sizeof o, offsetof(seedwalk_sampler_options, stack_bytes), options);
	if (err)
		return err;
	if (!o.info || o.stack_bytes > MOST_STACK_BYTES)
		return SEEDWALK_BAD_ARGUMENT;
	if (o.flags)
		return SEEDWALK_UNKNOWN_FIELD;
	uint32_t closed = CLOSED;
	if (!__atomic_compare_exchange_n(&state, &closed, OPENING, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return SEEDWALK_SECOND;
	opener = sw_thread_self();
	err = start(&o);
	__atomic_store_n(&state, err ? CLOSED : OPEN, __ATOMIC_SEQ_CST);
	return err;
}

SW_EXPORT int seedwalk_sampler_open(const seedwalk_sampler_options *options) { return sw_told(opened(options)); }

SW_EXPORT int seedwalk_sampler_close(void)
{
	uint32_t open = OPEN;
	if (!__atomic_compare_exchange_n(&state, &open, ENDED, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return SEEDWALK_NOT_OPEN;
	sw_stop(); /* a running round ends after the current thread */
	if (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) == sw_thread_self())
		return SEEDWALK_OK; /* called by on_stack: nothing is suspended */
	for (int ms = 0; ms < LONGEST_ROUND_MS && __atomic_load_n(&inside, __ATOMIC_SEQ_CST); ms++)
		sw_sleep_us(1000);
	return SEEDWALK_OK;
}

/* ---- forwarded ---- */

static void count(uint32_t *n) { __atomic_add_fetch(n, 1, __ATOMIC_RELEASE); }

SW_EXPORT int seedwalk_sampler_thread_created(uint64_t thread)
{
	count(&sw_forwarded_created);
	sw_thread_created(thread);
	return SEEDWALK_OK;
}

SW_EXPORT int seedwalk_sampler_thread_assigned(uint64_t thread, uint32_t os_thread)
{
	count(&sw_forwarded_assigned);
	sw_thread_assigned(thread, os_thread);
	return SEEDWALK_OK;
}

SW_EXPORT int seedwalk_sampler_thread_destroyed(uint64_t thread)
{
	sw_thread_destroyed(thread);
	return SEEDWALK_OK;
}

SW_EXPORT int seedwalk_sampler_module_loaded(uint64_t module)
{
	count(&sw_forwarded_loaded);
	sw_event_push(SW_EVENT_MODULE_LOAD, module);
	return SEEDWALK_OK;
}

SW_EXPORT int seedwalk_sampler_module_unloading(uint64_t module)
{
	(void)module;
	sw_unload();
	return SEEDWALK_OK;
}

SW_EXPORT int seedwalk_sampler_thread_named(uint64_t thread, uint32_t units, const void *name)
{
	if (units && !name)
		return SEEDWALK_BAD_ARGUMENT;
	sw_thread_renamed(thread, units, name);
	return SEEDWALK_OK;
}

SW_EXPORT int seedwalk_sampler_code_changed(uint64_t function)
{
	sw_event_push(SW_EVENT_JIT, function);
	return SEEDWALK_OK;
}

/* ---- sampling ---- */

enum { LOOK_AGAIN = 32 };

/* The first sample that can detect a vendor's omissions reports them. */
static int look(void)
{
	if (looking) {
		looking--;
		return SEEDWALK_OK;
	}
	int all, err = sw_check_forwarded(&all);
	looking = err || !all ? 0 : LOOK_AGAIN;
	return err;
}

static void finish(const seedwalk_sampler_request *q, seedwalk_sampler_result *r)
{
	r->stacks = sw_stack_count;
	r->dropped = sw_copies_dropped();
	for (int i = 0; i < sw_stack_count; i++)
		r->complete += sw_stacks[i].gap == 0;
	for (int i = 0; q->on_stack && i < sw_stack_count && sw_sampler_is_open(); i++)
		q->on_stack(q->client, &sw_stacks[i]);
	next_stack = q->on_stack ? sw_stack_count : 0;
}

static int sample(const seedwalk_sampler_request *q, seedwalk_sampler_result *r)
{
	sw_stack_count = 0;
	int err = look();
	if (!err && !(q->flags & SEEDWALK_COPIES) && sw_signal_taken())
		err = SEEDWALK_TAKEN;
	if (!err)
		err = swgoSamplerRound((int32_t)q->flags, q->thread, r);
	if (!err)
		finish(q, r);
	return err;
}

/* Succeeds if the caller's thread may enter Go, and no other thread is sampling. */
static int enter(void)
{
	uint64_t self = sw_thread_self(), none = 0;
	if (!sw_sampler_is_open())
		return SEEDWALK_NOT_OPEN;
	if (self == opener || sw_thread_by_tid(self))
		return SEEDWALK_WRONG_THREAD;
	if (!__atomic_compare_exchange_n(&inside, &none, self, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return SEEDWALK_BUSY;
	if (sw_sampler_is_open())
		return SEEDWALK_OK;
	__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST); /* closed meanwhile */
	return SEEDWALK_NOT_OPEN;
}

static int sampled(const seedwalk_sampler_request *request, seedwalk_sampler_result *result)
{
	seedwalk_sampler_request q;
	seedwalk_sampler_result r = {.size = sizeof r};
	int err = sw_sized(&q, sizeof q, offsetof(seedwalk_sampler_request, thread), request);
	err = err ? err : sw_answerable(result, offsetof(seedwalk_sampler_result, suspensions));
	if (err)
		return err;
	if (q.flags & ~(uint32_t)(SEEDWALK_COPIES | SEEDWALK_SOURCES))
		return SEEDWALK_UNKNOWN_FIELD;
	if ((err = enter()))
		return err;
	err = sample(&q, &r);
	sw_return(result, sizeof r, &r);
	__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);
	return err;
}

SW_EXPORT int seedwalk_sampler_sample(const seedwalk_sampler_request *request, seedwalk_sampler_result *result)
{
	return sw_told(sampled(request, result));
}

SW_EXPORT int seedwalk_sampler_next(const seedwalk_stack **stack)
{
	if (!stack)
		return SEEDWALK_BAD_ARGUMENT;
	*stack = NULL;
	int err = enter();
	if (err)
		return err;
	if (next_stack < sw_stack_count)
		*stack = &sw_stacks[next_stack++];
	__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);
	return SEEDWALK_OK;
}
