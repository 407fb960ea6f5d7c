/* The sampler's interface (seedwalk.h) over a helper process. The probe inside this library copies
 * threads. The helper, `seedwalk engine`, decides when to sample, walks the copies, and sends stacks. This
 * process has no thread of the library's, no Go, and nothing that suspends the runtime. */
#include "client.h"

#include <stdio.h>

enum { CLOSED, OPEN, GONE, KEEPING };
enum { MOST_STACKS = 4096, MOST_READS = 512, RATE = 100000 /* thousandths of a hertz */, HANGS_S = 10, CLOSE_S = 3 };
#define SECOND 1000000000ull

static uint32_t state;
static uint32_t closing; /* threads that wait in seedwalk_sampler_close */
static uint32_t inside;  /* the lock of the following variables: the process that holds it; 0: free */
static uint32_t owner;   /* the process that opened the sampler; its forked child has no engine */
static struct engine engine = NO_ENGINE;
static struct stream in;
static char engine_path[1024];
static seedwalk_client_options wanted;

static int ours(void) { return owner == sw_process(); }

/* lock takes the lock if it is free, and does not wait. A forked child also takes a lock that a thread of its
 * parent held at the fork: that thread does not exist in the child. */
static int lock(void)
{
	uint32_t me = sw_process(), holder = __atomic_load_n(&inside, __ATOMIC_RELAXED);
	return holder != me && __atomic_compare_exchange_n(&inside, &holder, me, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static int unlock(int answer)
{
	__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);
	return answer;
}

/* ---- the helper ---- */

/* leave restores this process, whatever the helper does. */
static void leave(int as)
{
	sw_release(&engine);
	if (sw_shared)
		sw_end(sw_shared);
	__atomic_store_n(&state, as, __ATOMIC_SEQ_CST);
	sw_keep_end(); /* no thread begins another copy */
}

static const char silent[] = "it ended and sent nothing: is it the seedwalk that belongs to this library?";

static void blame(const char *why)
{
	char line[sizeof in.bye + 100];
	snprintf(line, sizeof line, "the helper process: %s", why);
	sw_problem(line);
}

static int gone(int error, const char *why)
{
	leave(GONE); /* first: blame takes locks */
	blame(why);
	return error;
}

/* adopt makes this process the owner. After a fork, the engine and the shared pages are the parent's. The
 * stream's memory is not freed, because a thread of the parent may have been changing it at the fork. */
static void adopt(void)
{
	sw_forked();
	sw_keep_forked();
	memset(&in, 0, sizeof in);
	closing = 0;
	__atomic_store_n(&state, CLOSED, __ATOMIC_SEQ_CST);
	__atomic_store_n(&owner, sw_process(), __ATOMIC_SEQ_CST);
}

static int start(void)
{
	char line[sizeof engine_path + 200];
	if (!ours())
		adopt();
	sw_stream_reset(&in);
	sw_find(wanted.engine, engine_path, sizeof engine_path);
	sw_stay();
	int e = sw_spawn(engine_path, wanted.millihertz ? wanted.millihertz : RATE, wanted.flags, &engine);
	if (e) {
		int n = snprintf(line, sizeof line, "cannot run %s: ", engine_path);
		sw_reason(e, line + n, sizeof line - (size_t)n);
		sw_problem(line);
		leave(CLOSED);
		e = wanted.keep ? sw_keep(wanted.keep, line) : SEEDWALK_NO_ENGINE;
		if (!e)
			__atomic_store_n(&state, KEEPING, __ATOMIC_SEQ_CST);
		return e;
	}
	if ((e = sw_share(&engine))) {
		if (e == -1)
			sw_problem("there is no memory that can be shared, or the recording before has not ended");
		else
			blame(silent);
		leave(CLOSED);
		return e == -1 ? SEEDWALK_SYSTEM : SEEDWALK_ENGINE_GONE;
	}
	__atomic_store_n(&state, OPEN, __ATOMIC_SEQ_CST);
	return SEEDWALK_OK;
}

EXPORT int seedwalk_client_configure(const seedwalk_client_options *options)
{
	seedwalk_client_options o;
	int e = sw_sized(&o, sizeof o, offsetof(seedwalk_client_options, millihertz), options);
	if (!e && o.flags & ~(uint32_t)(SEEDWALK_CLIENT_NO_CPU | SEEDWALK_CLIENT_NO_WALL))
		e = SEEDWALK_UNKNOWN_FIELD;
	if (!e && (o.millihertz > 1000000 || o.flags == (SEEDWALK_CLIENT_NO_CPU | SEEDWALK_CLIENT_NO_WALL)))
		e = SEEDWALK_BAD_ARGUMENT;
	if (!e)
		wanted = o;
	return sw_told(e);
}

EXPORT int seedwalk_sampler_open(const seedwalk_sampler_options *options)
{
	seedwalk_sampler_options o;
	int e = options ? sw_sized(&o, sizeof o, offsetof(seedwalk_sampler_options, info), options) : SEEDWALK_OK;
	if (e)
		return sw_told(e);
	if (!lock())
		return sw_told(SEEDWALK_BUSY);
	uint32_t is = __atomic_load_n(&state, __ATOMIC_SEQ_CST);
	e = (is == OPEN || is == KEEPING) && ours() ? SEEDWALK_SECOND : start();
	return sw_told(unlock(e));
}

EXPORT int seedwalk_sampler_close(void)
{
	char rest[4096];
	uint64_t limit = now() + CLOSE_S * SECOND;
	int locked;
	if (!ours() || __atomic_load_n(&state, __ATOMIC_SEQ_CST) == CLOSED)
		return sw_told(SEEDWALK_NOT_OPEN);
	__atomic_fetch_add(&closing, 1, __ATOMIC_SEQ_CST);
	while (!(locked = lock()) && now() < limit)
		sw_pause();
	__atomic_fetch_sub(&closing, 1, __ATOMIC_SEQ_CST);
	if (!locked) /* another call has not returned, perhaps because of on_stack: the sampler stays open */
		return sw_told(SEEDWALK_BUSY);
	if (__atomic_load_n(&state, __ATOMIC_SEQ_CST) == CLOSED)
		return unlock(SEEDWALK_NOT_OPEN); /* another thread has closed it */
	sw_finish(&engine);
	for (long n = 1; n && now() < limit;) { /* it restores the signals, and closes */
		n = sw_receive(&engine, rest, sizeof rest);
		if (n == NOT_YET)
			sw_pause();
	}
	leave(CLOSED);
	sw_stream_reset(&in);
	return unlock(SEEDWALK_OK);
}

/* ---- stacks ---- */

/* Callbacks of the in-process library. The engine sees these events itself, so they do nothing here. */
EXPORT int seedwalk_sampler_thread_created(uint64_t thread) { return (void)thread, SEEDWALK_OK; }
EXPORT int seedwalk_sampler_module_loaded(uint64_t module) { return (void)module, SEEDWALK_OK; }
EXPORT int seedwalk_sampler_module_unloading(uint64_t module) { return (void)module, SEEDWALK_OK; }
EXPORT int seedwalk_sampler_code_changed(uint64_t function) { return (void)function, SEEDWALK_OK; }
EXPORT int seedwalk_sampler_thread_named(uint64_t thread, uint32_t units, const void *name) { return (void)thread, (void)units, (void)name, SEEDWALK_OK; }

/* ended maps the engine's last message, or its silence, to an error. */
static int ended(enum event e, long n)
{
	if (e == MALFORMED)
		return gone(SEEDWALK_ENGINE_GONE, "it sent what is no stream of this version: is it the seedwalk that belongs to this library?");
	if (e == NO_MEMORY)
		return gone(SEEDWALK_ENGINE_GONE, "there is no memory for a stack");
	if (e == BYE)
		return strcmp(in.bye, "refused") ? gone(SEEDWALK_ENGINE_GONE, in.bye) : gone(SEEDWALK_REFUSED, in.note);
	if (n != NOT_YET)
		return gone(SEEDWALK_ENGINE_GONE, in.greeted ? "it has ended" : silent);
	return SEEDWALK_OK;
}

/* hangs reports whether a heartbeat is old, and no other has come for a second. If the whole machine or
 * container stood still, the helper needs that second. */
static int hangs(uint64_t beat, uint64_t time)
{
	static uint64_t old, since;
	if (time < beat || time - beat <= HANGS_S * SECOND)
		return 0;
	if (beat != old)
		old = beat, since = time;
	return time - since > SECOND;
}

/* next decodes the next available stack; in.stack.size is 0 if none is complete. */
static int next(void)
{
	in.stack.size = 0;
	if (state == KEEPING)
		return SEEDWALK_OK;
	sw_look(&engine);
	if (hangs(__atomic_load_n(&sw_shared->heartbeat, __ATOMIC_RELAXED), now()))
		return gone(SEEDWALK_ENGINE_GONE, "it has not answered for 10 s");
	for (int reads = 0; reads < MOST_READS; reads++) {
		enum event e = sw_decode(&in);
		if (e == STACK) {
			in.stack.thread = sw_id_of(in.stack.os_thread);
			return SEEDWALK_OK;
		}
		size_t room = e == NONE ? sw_room(&in) : 0;
		long n = room ? sw_receive(&engine, in.bytes + in.to, room) : 0;
		if (n <= 0)
			return ended(e == NONE && !room ? NO_MEMORY : e, n);
		in.to += (size_t)n;
	}
	return SEEDWALK_OK;
}

/* entered takes the lock and returns SEEDWALK_OK, or the reason why nothing can be sampled now. */
static int entered(void)
{
	if (!ours() || __atomic_load_n(&closing, __ATOMIC_SEQ_CST))
		return SEEDWALK_NOT_OPEN;
	if (!lock())
		return SEEDWALK_BUSY;
	switch (__atomic_load_n(&state, __ATOMIC_SEQ_CST)) {
	case OPEN:
	case KEEPING:
		return SEEDWALK_OK;
	case GONE:
		return unlock(SEEDWALK_ENGINE_GONE);
	}
	return unlock(SEEDWALK_NOT_OPEN);
}

EXPORT int seedwalk_sampler_sample(const seedwalk_sampler_request *request, seedwalk_sampler_result *result)
{
	seedwalk_sampler_request q;
	seedwalk_sampler_result r;
	memset(&r, 0, sizeof r);
	int e = sw_sized(&q, sizeof q, offsetof(seedwalk_sampler_request, thread), request);
	e = e ? e : sw_answerable(result, offsetof(seedwalk_sampler_result, suspensions));
	if (!e && q.flags & ~(uint32_t)(SEEDWALK_COPIES | SEEDWALK_SOURCES))
		e = SEEDWALK_UNKNOWN_FIELD;
	e = e ? e : entered();
	if (e)
		return sw_told(e);
	/* on_stack may fork: the child leaves the parent's stream alone */
	while (q.on_stack && r.stacks < MOST_STACKS && !__atomic_load_n(&closing, __ATOMIC_RELAXED) && ours()) {
		e = next();
		if (e || !in.stack.size)
			break;
		if (q.thread && q.thread != in.stack.thread)
			continue;
		r.stacks++, r.complete += !in.stack.gap;
		q.on_stack(q.client, &in.stack);
	}
	r.threads = result ? sw_live_threads() : 0;
	r.dropped = state == KEEPING ? sw_keep_missed() : sw_shared ? sw_shared->missed : 0;
	sw_return(result, sizeof r, &r);
	return sw_told(unlock(e));
}

EXPORT int seedwalk_sampler_next(const seedwalk_stack **stack)
{
	if (!stack)
		return sw_told(SEEDWALK_BAD_ARGUMENT);
	*stack = 0;
	int e = entered();
	if (e)
		return sw_told(e);
	e = next();
	if (!e && in.stack.size)
		*stack = &in.stack;
	return sw_told(unlock(e));
}

/* sw_copy_now copies the calling thread from its caller on. It neither waits nor allocates. */
__attribute__((used)) int sw_copy_now(uint64_t tag, const struct kept *k)
{
	struct sw_header *h = sw_shared;
	uint32_t is = __atomic_load_n(&state, __ATOMIC_RELAXED);
	if (is == KEEPING && ours()) {
		const struct sw_at at = {own_tid(), SW_ASKED_COPY, tag, now(), 0};
		return sw_keep_copy(&at, k);
	}
	if (is != OPEN || !h || h->left)
		return SEEDWALK_NOT_OPEN;
	uint32_t tid = own_tid();
	/* The helper knows most threads of this process, which saves them a system call. A thread of a forked
	 * child has a number of its own. */
	if (!sw_slot_of(h, tid) && !ours())
		return SEEDWALK_NOT_OPEN;
	const struct sw_at at = {tid, SW_ASKED_COPY, tag, now(), 0};
	return sw_take(h, &at, 0, 0, k) ? SEEDWALK_OK : SEEDWALK_FULL;
}

#ifndef SW_TEXT_VERSION
#define SW_TEXT_VERSION "development"
#endif

EXPORT uint32_t seedwalk_version(char *out, int32_t room)
{
	sw_give(SW_TEXT_VERSION, out, room);
	return SEEDWALK_ABI;
}
