// Native work: on the caller's stack, and on a stack of its own.
#include <stdlib.h>
#include <time.h>
#ifdef FIBER
#include <ucontext.h>
#endif

static long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((noinline)) void compute(int milliseconds) {
	volatile unsigned n = 1;
	for (long end = now() + milliseconds; now() < end;)
		for (int i = 0; i < 100000; i++) n = n * 5 + 1;
}

#ifdef FIBER
static int left;
static void work(void) { compute(left); }

void on_fiber(int milliseconds) {
	static ucontext_t home, fiber;
	size_t size = 256 << 10;
	left = milliseconds;
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = malloc(size);
	fiber.uc_stack.ss_size = size;
	fiber.uc_link = &home;
	makecontext(&fiber, work, 0);
	swapcontext(&home, &fiber);
	free(fiber.uc_stack.ss_sp);
}
#endif
