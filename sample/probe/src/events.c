/* Receives the runtime's events. A synchronous EventPipe session of a profiler delivers them on the thread
 * that raises them, before a wait begins and after it has ended.
 *
 * The start of a wait only reads the clock. Its stop copies registers and stack if the wait was long enough:
 * the managed frames are still those of the start. Locks, allocations, and exceptions arrive in cooperative
 * mode, in which a blocked thread delays every collection. So nothing here waits, allocates, or locks. */
#include "local.h"

enum { /* ids of Microsoft-Windows-DotNETRuntime */
	ALLOCATION_TICK = 10,
	EXCEPTION_THROWN = 80,
	CONTENTION_START = 81,
	CONTENTION_STOP = 91,
	WAIT_START = 301,
	WAIT_STOP = 302,
	ALLOCATION_SAMPLED = 303,
};

/* sw_delivered is EventPipeEventDelivered. The walk starts at its caller, so that this library is not in the
 * stack. */
#ifdef _WIN32
__asm__(".text\n.globl sw_delivered\n.def sw_delivered; .scl 2; .type 32; .endef\n.seh_proc sw_delivered\n"
	"sw_delivered:\n" DELIVERED "\t.seh_endproc\n");
#else
__asm__(".text\n.globl sw_delivered\n.hidden sw_delivered\n.type sw_delivered,%function\n"
	"sw_delivered:\n\t.cfi_startproc\n" DELIVERED "\t.cfi_endproc\n"
	".size sw_delivered, .-sw_delivered\n");
#endif

/* The first event of each of the first TO_LEARN ids is always copied. By comparing these stacks, the tool
 * learns how events are delivered. */
enum { TO_LEARN = 8 };

static uint32_t learned[TO_LEARN], learning;

static int first_of(uint32_t id)
{
	uint32_t n = __atomic_load_n(&learning, __ATOMIC_RELAXED);
	if (n >= TO_LEARN)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		if (__atomic_load_n(&learned[i], __ATOMIC_RELAXED) == id)
			return 0;
	if (!__atomic_compare_exchange_n(&learning, &n, n + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return 0;
	__atomic_store_n(&learned[n], id, __ATOMIC_RELAXED);
	return 1;
}

void sw_forget(void) { __atomic_store_n(&learning, 0, __ATOMIC_RELAXED); }

static struct sw_waiter *waiters(struct sw_header *h)
{
	return (struct sw_waiter *)((char *)h + SW_HEADER_SIZE + SW_SLOTS * SW_SLOT_SIZE);
}

/* waiter returns the thread's entry, near the place of its number. With take, it makes one. */
static struct sw_waiter *waiter(struct sw_header *h, uint32_t tid, int take)
{
	enum { NEAR = 16 };
	struct sw_waiter *all = waiters(h);
	for (uint32_t i = 0; i < NEAR; i++) {
		struct sw_waiter *w = all + ((tid + i) & (SW_WAITERS - 1));
		if (__atomic_load_n(&w->tid, __ATOMIC_RELAXED) == tid)
			return w;
	}
	for (uint32_t i = 0; take && i < NEAR; i++) {
		struct sw_waiter *w = all + ((tid + i) & (SW_WAITERS - 1));
		uint32_t none = 0;
		if (__atomic_compare_exchange_n(&w->tid, &none, tid, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return w;
	}
	return 0;
}

static void count(uint64_t *c) { __atomic_fetch_add(c, 1, __ATOMIC_RELAXED); }

static void opened(struct sw_header *h, uint32_t tid, uint32_t id, const void *payload, uint32_t size, uint64_t sp, uint64_t time)
{
	struct sw_waiter *w = waiter(h, tid, 1);
	if (!w) {
		count(&h->crowded);
		return;
	}
	uint32_t depth = w->depth;
	/* Some waits have no stop: an earlier thread of this number ended, or an exception left the wait. A wait
	 * inside another is below it on the stack, but for a few frames of the runtime, and nothing waits inside
	 * a lock's wait. Another profiler's session delivers the same event again, at the same place. */
	enum { FRAMES = 4096 };
	for (uint32_t i = 0; i < depth; i++)
		if (w->open[i].sp + FRAMES <= sp || (w->open[i].id == id && (id == CONTENTION_START || w->open[i].sp == sp)))
			depth = i;
	if (depth >= SW_NESTED) {
		count(&h->crowded);
		return;
	}
	/* The tool may read the entry at the same time. A time of 0 marks the rest as invalid. */
	struct sw_open *o = &w->open[depth];
	__atomic_store_n(&o->since, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	o->sp = sp;
	o->id = id;
	o->size = size < SW_START_PAYLOAD ? size : SW_START_PAYLOAD;
	sw_copy(o->payload, P(payload), o->size);
	__atomic_store_n(&o->since, time, __ATOMIC_RELEASE);
	__atomic_store_n(&w->depth, depth + 1, __ATOMIC_RELEASE);
}

/* closed removes the innermost open wait of a kind. inner reports whether it was part of waiting for a lock. */
static int closed(struct sw_header *h, uint32_t tid, uint32_t id, struct sw_open *out, int *inner)
{
	struct sw_waiter *w = waiter(h, tid, 0);
	if (!w)
		return 0;
	for (uint32_t i = w->depth; i > 0; i--) {
		if (w->open[i - 1].id != id)
			continue;
		*out = w->open[i - 1];
		*inner = i > 1 && w->open[i - 2].id == CONTENTION_START;
		__atomic_store_n(&w->depth, i - 1, __ATOMIC_RELEASE);
		if (i == 1)
			__atomic_store_n(&w->tid, 0, __ATOMIC_RELEASE);
		return 1;
	}
	return 0;
}

/* take copies the thread into a record. */
static void take(struct sw_header *h, uint32_t tid, uint32_t id, const void *payload, uint32_t size, const struct kept *k, uint64_t since, uint64_t time, int flags)
{
	const struct sw_at at = {tid, id, since, time, flags};
	if (id != EXCEPTION_THROWN && id != ALLOCATION_TICK && id != ALLOCATION_SAMPLED) {
		sw_take(h, &at, payload, size, k);
		return;
	}
	/* These events are frequent and alike: half of the ring is reserved for all other records. */
	if (__atomic_load_n(&h->head, __ATOMIC_RELAXED) - __atomic_load_n(&h->tail, __ATOMIC_RELAXED) > SW_RING_SIZE / 2)
		count(&h->missed);
	else if (sw_take(h, &at, payload, size, k))
		return;
	sw_dropped(h, id, payload, size);
}

/* stop ends a wait and copies the thread if the wait was long. */
static void stop(struct sw_header *h, uint32_t tid, uint32_t start, uint32_t id, const struct kept *k, uint64_t time, int learn)
{
	struct sw_open o;
	int inner = 0;
	if (!closed(h, tid, start, &o, &inner)) {
		count(&h->early);
		o.since = time;
		o.size = 0;
		inner = 1;
	} else if (inner) {
		count(&h->inner);
	} else if (time - o.since < h->wait_min) {
		count(&h->brief);
		__atomic_fetch_add(&h->brief_nanos, time - o.since, __ATOMIC_RELAXED);
		inner = 1;
	}
	if (!inner || learn)
		take(h, tid, id, o.payload, o.size, k, o.since, time, inner ? SW_LEARN : 0);
}

/* sw_event receives one event. Ids are unique only within a provider. */
__attribute__((used)) void sw_event(void *profiler, void *provider, uint32_t id, const void *payload, uint32_t size, const struct kept *k)
{
	struct sw_header *h = sw_shared;
	uint32_t wanted = h ? __atomic_load_n(&h->events, __ATOMIC_RELAXED) : 0;
	if (!wanted || !sw_is_ours(profiler) || !sw_is_runtime(provider))
		return;
	uint32_t tid = own_tid();
	uint64_t time = now();
	int learn = first_of(id);
	switch (id) {
	case WAIT_START:
	case CONTENTION_START:
		count(id == WAIT_START ? &h->waits : &h->locks);
		opened(h, tid, id, payload, size, k->sp, time);
		break;
	case WAIT_STOP:
		count(&h->wait_stops);
		stop(h, tid, WAIT_START, id, k, time, learn);
		return;
	case CONTENTION_STOP:
		count(&h->lock_stops);
		stop(h, tid, CONTENTION_START, id, k, time, learn);
		return;
	case ALLOCATION_TICK:
	case ALLOCATION_SAMPLED:
	case EXCEPTION_THROWN: {
		int alloc = id != EXCEPTION_THROWN;
		if (!(wanted & (alloc ? SW_ALLOC : SW_EXCEPTION)))
			break;
		count(alloc ? &h->allocs : &h->exceptions);
		take(h, tid, id, payload, size, k, 0, time, 0);
		return;
	}
	}
	if (learn)
		take(h, tid, id, payload, 0, k, 0, time, SW_LEARN);
}
