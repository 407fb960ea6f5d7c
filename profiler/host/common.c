/* Code common to both platforms: the end, and waiting. */
#include "platform.h"

static int stopping;

void sw_stop(void) { __atomic_store_n(&stopping, 1, __ATOMIC_RELEASE); }
int sw_stopping(void) { return __atomic_load_n(&stopping, __ATOMIC_ACQUIRE); }

/* Waits until *flag is value, for at most ms by the clock. (The system's shortest sleep may return at
 * once, or take sixteen times as long as requested.) Returns whether the flag has the value. */
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
