/* What the two platforms have in common: the end, waiting. */
#include "platform.h"

static int stopping;

void sw_stop(void) { __atomic_store_n(&stopping, 1, __ATOMIC_RELEASE); }
int sw_stopping(void) { return __atomic_load_n(&stopping, __ATOMIC_ACQUIRE); }

/* Waits until *flag is value, at most so long by the clock: the system's shortest
 * sleep may be none at all, or sixteen times what was asked for. Whether it is. */
int sw_wait_flag(int *flag, int value, unsigned ms)
{
	uint64_t end = sw_now_ns() + 1000000 * (uint64_t)ms;
	while (__atomic_load_n(flag, __ATOMIC_SEQ_CST) != value) {
		if (sw_now_ns() >= end)
			return 0;
		sw_sleep_us(1000);
	}
	return 1;
}
