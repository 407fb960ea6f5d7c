/* Litmus tests of the literature, with known outcomes. They test the explorer. ORDER_S is the
 * memory order of stores, and ORDER_L that of loads. */
#include "native.h"

#include <stdio.h>
#include <string.h>

enum { SB, MP, LB, IRIW, TWO_TWO_W, CORR, RMW };
static uint32_t x, y, r[4];

int world_threads(void) { return TEST == IRIW ? 4 : 2; }

UNSEEN void world_reset(void)
{
	sim_watch(&x, 4);
	sim_watch(&y, 4);
	x = y = 0;
	memset(r, 0, sizeof r);
}

static void set(uint32_t *p, uint32_t v) { __atomic_store_n(p, v, ORDER_S); }
static void get(int i, uint32_t *p)
{
	uint32_t v = __atomic_load_n(p, ORDER_L);
	r[i] = v;
}

void world_thread(int i)
{
	uint32_t *mine = i ? &y : &x, *other = i ? &x : &y;
	switch (TEST) {
	case SB: /* may both threads miss the other's store? */
		set(mine, 1);
		get(i, other);
		return;
	case MP: /* may the flag come before the data? */
		if (i == 0) {
			__atomic_store_n(&x, 1, __ATOMIC_RELAXED);
#ifdef FENCE
			__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
			set(&y, 1);
			return;
		}
		get(0, &y);
		r[1] = __atomic_load_n(&x, __ATOMIC_RELAXED);
		return;
	case LB:
		get(i, other);
		set(mine, 1);
		return;
	case IRIW: /* may two readers see two stores in different orders? */
		if (i < 2) {
			set(mine, 1);
			return;
		}
		get(2 * i - 4, i == 2 ? &x : &y);
		get(2 * i - 3, i == 2 ? &y : &x);
		return;
	case TWO_TWO_W: /* may both first stores be the last ones? */
		set(mine, 1);
		set(other, 2);
		return;
	case CORR: /* a location never goes back */
		if (i == 0) {
			set(&x, 1);
			set(&x, 2);
			return;
		}
		get(0, &x);
		get(1, &x);
		return;
	case RMW: /* no increment is lost */
		__atomic_fetch_add(&x, 1, __ATOMIC_RELAXED);
		return;
	}
}

UNSEEN void world_end(void)
{
	char text[40];
	snprintf(text, sizeof text, "%d%d%d%d x%d y%d", r[0], r[1], r[2], r[3], x, y);
	sim_outcome(text);
}
