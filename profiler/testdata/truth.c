/* The native half of Truth.cs: functions that write themselves into the shadow
 * stack of their thread. The shadow lies in the thread's own stack memory, so
 * that a copy of the stack holds the truth about itself.
 *
 * Built without frame pointers: a chain of RBP does not find these frames. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "truth.h"

#define NOINLINE __attribute__((noinline, noclone))

typedef int (*callback_fn)(struct shadow *s, int depth);

static volatile uint64_t sink;

static void work(int rounds)
{
	uint64_t h = sink;
	for (int i = 0; i < rounds; i++)
		h = (h ^ (uint64_t)i) * 1099511628211u;
	sink = h;
}

NOINLINE int truth_spin(struct shadow *s, int rounds)
{
	push(s, TRUTH_SPIN);
	work(rounds);
	pop(s);
	return rounds;
}

NOINLINE int truth_sleep(struct shadow *s, int microseconds)
{
	push(s, TRUTH_SLEEP);
	struct timespec t = {0, microseconds * 1000L};
	nanosleep(&t, NULL);
	pop(s);
	return microseconds;
}

NOINLINE int truth_recurse(struct shadow *s, int depth)
{
	push(s, TRUTH_RECURSE);
	char room[64 + 16 * (depth % 7)]; /* frames of several sizes, some with alloca */
	memset(room, depth, sizeof room);
	int r = depth == 0 ? truth_spin(s, 3000) : truth_recurse(s, depth - 1);
	r += room[depth % 64];
	pop(s);
	return r;
}

/* managed -> here -> managed. */
NOINLINE int truth_call(struct shadow *s, callback_fn f, int depth)
{
	push(s, TRUTH_CALL);
	int r = f(s, depth);
	work(100);
	pop(s);
	return r + 1;
}

NOINLINE int truth_call_deep(struct shadow *s, callback_fn f, int depth)
{
	push(s, TRUTH_CALL_DEEP);
	int r = truth_call(s, f, depth) + truth_spin(s, 500);
	pop(s);
	return r;
}

static int order(const void *a, const void *b, void *shadow)
{
	struct shadow *s = shadow;
	push(s, TRUTH_ORDER);
	int x = *(const int *)a, y = *(const int *)b;
	work(20);
	pop(s);
	return x < y ? -1 : x > y;
}

/* Our frames on both sides of libc's. */
NOINLINE int truth_sort(struct shadow *s, int n)
{
	push(s, TRUTH_SORT);
	int v[512];
	for (int i = 0; i < n && i < 512; i++)
		v[i] = (i * 7919) % 509;
	qsort_r(v, (size_t)n, sizeof *v, order, s);
	pop(s);
	return v[0];
}

/* A string crosses: the runtime makes an IL stub that marshals. */
NOINLINE int truth_text(struct shadow *s, const char *text)
{
	push(s, TRUTH_TEXT);
	int n = (int)strlen(text);
	work(2000);
	pop(s);
	return n;
}
