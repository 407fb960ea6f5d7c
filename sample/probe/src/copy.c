/* Copies the calling thread at a call: its callee-saved registers, and its stack from the caller on. Nothing
 * here waits, allocates, or locks. */
#include "local.h"

/* top returns the end of the thread's stack: the C library's thread structure, which glibc and musl both put
 * there, or the start of the first thread's stack. */
static uint64_t top(struct sw_header *h, uint32_t tid)
{
	return tid == h->pid ? h->main_stack : library_base() & ~7ull;
}

/* is_own reports whether a range lies within the bounds of the thread's own stack, which the tool has set. Such
 * a range is copied without checks, because a checked copy takes two system calls. The bounds are those of the
 * memory mapping. It may hold several stacks, but no unreadable page between them. */
static int is_own(const struct sw_slot *s, uint64_t from, uint64_t size)
{
	uint64_t low = s ? __atomic_load_n(&s->low, __ATOMIC_ACQUIRE) : 0;
	uint64_t high = s ? __atomic_load_n(&s->high, __ATOMIC_RELAXED) : 0;
	return low && from >= low && from < high && size <= high - from;
}

/* sw_take copies the thread into a record. It returns 0 if the ring has no room. */
int sw_take(struct sw_header *h, const struct sw_at *what, const void *payload, uint32_t size, const struct kept *k)
{
	int flags = what->flags;
	uint64_t from = k->sp, high = top(h, what->tid), want, at;
	uint32_t body = size < SW_MAX_PAYLOAD ? size : SW_MAX_PAYLOAD, room = (body + 7) & ~7u;
	if (high <= from || high - from > SW_MAX_STACK * 64ull) {
		high = from + SW_MAX_CHECKED;
		flags |= SW_FOREIGN;
	}
	if ((want = high - from) > SW_MAX_EVENT_STACK) {
		want = SW_MAX_EVENT_STACK;
		flags |= SW_CUT;
	}
	struct sw_record *r = sw_claim(h, (sizeof *r + SW_MAX_EXTRA + room + want + SW_ALIGN - 1) & ~(uint64_t)(SW_ALIGN - 1), &at);
	if (!r) {
		__atomic_fetch_add(&h->missed, 1, __ATOMIC_RELAXED);
		return 0;
	}
	char *extra = (char *)(r + 1), *text = extra + SW_MAX_EXTRA, *stack = text + room;
	r->tid = what->tid;
	r->slot = SW_SLOTS;
	r->why = SW_EVENT;
	r->time = what->time;
	r->weight = 1;
	r->extra_size = 0;
	r->event = what->id;
	r->payload_size = body;
	r->since = what->since;
	r->below = r->below_size = 0;
	kept_registers(r->regs, k);
	sw_copy(text, P(payload), body);
	if (!(flags & SW_FOREIGN) && is_own(sw_slot_of(h, what->tid), from, high - from))
		sw_copy(stack, from, want);
	else
		want = sw_checked(stack, from, want);
	r->stack = from;
	r->stack_size = (uint32_t)want;
	if (sw_patched((uint64_t *)stack, want, h->patch)) {
		r->extra_size = (uint32_t)sw_checked(extra, sw_current(), SW_MAX_EXTRA);
		flags |= SW_PATCHED;
	}
	r->flags = (uint16_t)flags;
	r->nanos = (uint32_t)(now() - what->time);
	__atomic_fetch_add(&h->event_nanos, r->nanos, __ATOMIC_RELAXED);
	__atomic_fetch_add(&h->copies, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&r->commit, at | 1, __ATOMIC_RELEASE);
	return 1;
}
