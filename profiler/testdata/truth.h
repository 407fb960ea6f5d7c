/* The shadow stack: a thread's record of its own frames. Truth.cs writes the same layout. A push stores
 * the entry before the depth, so that the entries below the depth are always complete. */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdint.h>

enum { SHADOW_ROOM = 12000 };

struct shadow {
	uint64_t magic;   /* "SEEDWKSH" */
	uint64_t version; /* 1 */
	uint64_t depth;
	uint64_t scenario;
	uint64_t unstable; /* an exception is in flight: entries and frames disagree */
	uint64_t entries[SHADOW_ROOM];
};

/* The ids of truth-ids.txt. */
enum {
	TRUTH_SPIN = 101,
	TRUTH_SLEEP,
	TRUTH_RECURSE,
	TRUTH_CALL,
	TRUTH_CALL_DEEP,
	TRUTH_ORDER,
	TRUTH_SORT,
	TRUTH_TEXT,
	TRUTH_FIBRE,
	TRUTH_FIBRES,
	TRUTH_ALTERNATE,
	TRUTH_ON_ALTERNATE,
	TRUTH_CALL_ON_FIBRES,
	TRUTH_CALLING_FIBRE,
};

static inline void push(struct shadow *s, uint64_t id)
{
	uint64_t d = __atomic_load_n(&s->depth, __ATOMIC_RELAXED);
	__atomic_store_n(&s->entries[d % SHADOW_ROOM], id, __ATOMIC_RELEASE);
	__atomic_store_n(&s->depth, d + 1, __ATOMIC_RELEASE);
}

static inline void pop(struct shadow *s)
{
	__atomic_store_n(&s->depth, s->depth - 1, __ATOMIC_RELEASE);
}

#endif
