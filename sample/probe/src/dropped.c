/* Counts the events for which the ring has no room, and their bytes, by type. Such an event has no stack.
 * Nothing here waits, allocates, or locks. */
#include "local.h"

enum {
	TICK = 10, THROWN = 80, SAMPLED = 303, /* the runtime's ids of the events */
	PLACES = 16,       /* places where a type is looked for */
	FIRST = 2,         /* the first two places collect types that found none: allocations, exceptions */
	MEAN = 100 * 1024, /* bytes between two samples of the runtime, on average */
};

/* text returns the size in bytes of the UTF-16 text at p, without its zero. */
static uint32_t text(const uint8_t *p, uint32_t size)
{
	uint32_t n = 0;
	while (n + 2 <= size && (p[n] || p[n + 1]))
		n += 2;
	return n;
}

static uint64_t word(const uint8_t *p)
{
	uint64_t v;
	__builtin_memcpy(&v, p, sizeof v);
	return v;
}

/* stands_for returns how many allocated bytes a sampled object represents. The runtime chooses each byte with
 * probability 1/MEAN, and samples an object if it chose one of its bytes. So the result is the object's size
 * divided by the probability that the object is sampled. Probabilities are multiples of 2^-32. */
static uint64_t stands_for(uint64_t size)
{
	uint64_t none = 1ull << 32, power = (1ull << 32) - ((1ull << 32) + MEAN / 2) / MEAN;
	if (size == 0)
		size = 1;
	if (size >= 24 * MEAN)
		return size;
	for (uint64_t n = size; n; n >>= 1) {
		if (n & 1)
			none = none * power >> 32;
		power = power * power >> 32;
	}
	return (size << 32) / ((1ull << 32) - none);
}

/* entry returns the place of a type. For a new type it takes a place and sets first: the caller must store the
 * name. If no place is free, it returns the place that collects such types. */
static struct sw_type *entry(struct sw_header *h, uint64_t key, int *first)
{
	struct sw_type *all = (struct sw_type *)((char *)h + SW_HEADER_SIZE + SW_SLOTS * SW_SLOT_SIZE + SW_WAITERS * SW_WAITER_SIZE);
	uint64_t at = FIRST + ((key & ~SW_THROWN) * 0x9e3779b97f4a7c15ull >> 32) % (SW_TYPES - FIRST - PLACES);
	for (uint32_t i = 0; key && i < PLACES; i++) {
		struct sw_type *t = all + at + i;
		uint64_t was = __atomic_load_n(&t->key, __ATOMIC_RELAXED);
		if (was == 0 && __atomic_compare_exchange_n(&t->key, &was, key, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			*first = 1;
			return t;
		}
		if (was == key)
			return t;
	}
	return all + (key & SW_THROWN ? 1 : 0);
}

/* sw_dropped counts an event with its payload. A payload that is too short counts without bytes or type. */
void sw_dropped(struct sw_header *h, uint32_t id, const uint8_t *payload, uint32_t size)
{
	enum { TICK_HEAD = 26, SAMPLED_HEAD = 14 }; /* bytes before the type's name */
	uint64_t key = id == THROWN ? SW_THROWN : 0, bytes = 0;
	const uint8_t *name = payload;
	uint32_t n = 0;
	int first = 0;
	if (id == TICK && size >= TICK_HEAD) {
		bytes = word(payload + 10);
		key = word(payload + 18) & ~SW_THROWN;
		n = text(name += TICK_HEAD, size - TICK_HEAD);
	} else if (id == SAMPLED && size >= SAMPLED_HEAD) {
		key = word(payload + 6) & ~SW_THROWN;
		n = text(name += SAMPLED_HEAD, size - SAMPLED_HEAD);
		if (size - SAMPLED_HEAD - n >= 18) /* the zero, the address, the size */
			bytes = stands_for(word(name + n + 10));
	} else if (id == THROWN) {
		n = text(name, size);
		uint64_t sum = 0xcbf29ce484222325ull;
		for (uint32_t i = 0; i < n; i++)
			sum = (sum ^ name[i]) * 0x100000001b3ull;
		key |= sum;
	}
	struct sw_type *t = entry(h, key, &first);
	__atomic_fetch_add(&t->bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&t->count, 1, __ATOMIC_RELAXED);
	if (first) {
		n = n < SW_TYPE_NAME ? n : SW_TYPE_NAME;
		sw_copy(t->name, (uint64_t)(uintptr_t)name, n);
		__atomic_store_n(&t->size, n + 1, __ATOMIC_RELEASE);
	}
}
