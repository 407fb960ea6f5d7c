/* Threads that know their own stacks: each keeps a shadow of it in its own stack
 * memory, and counts.
 * Usage: stacks THREADS. Says "ready" when all run. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct shadow {
	volatile uint64_t magic, ticks, depth;
	volatile uint64_t entries[64];
};

#define BODY(id)                                                            \
	{                                                                   \
		s->entries[s->depth] = id;                                  \
		__asm__ volatile("" ::: "memory");                          \
		s->depth++;                                                 \
		int r = n ? next(s, n - 1, seed * 1103515245u + 12345) : leaf(s, seed); \
		s->depth--;                                                 \
		return r + id;                                              \
	}

static int next(struct shadow *s, int n, unsigned seed);

__attribute__((noipa)) static int leaf(struct shadow *s, unsigned seed)
{
	struct timespec t = {0, 300000};
	s->ticks++;
	if (seed & 0x10000)
		return nanosleep(&t, 0);
	for (volatile int i = 0; i < 3000; i++)
		;
	return 0;
}

__attribute__((noipa)) static int fa(struct shadow *s, int n, unsigned seed) BODY(1)
__attribute__((noipa)) static int fb(struct shadow *s, int n, unsigned seed) { volatile char room[100 + seed % 7]; room[0] = 1; BODY(2) }
__attribute__((noipa)) static int fc(struct shadow *s, int n, unsigned seed) { volatile char room[3000]; room[seed % 3000] = 1; BODY(3) }

__attribute__((noipa)) static int next(struct shadow *s, int n, unsigned seed)
{
	switch (seed >> 16 & 3) {
	case 0: return fa(s, n, seed);
	case 1: return fb(s, n, seed);
	default: return fc(s, n, seed);
	}
}

static int running;

static void *run(void *p)
{
	struct shadow s = {0x53544b43415453ull, 0, 0, {0}};
	__atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
	for (unsigned seed = (unsigned)(uintptr_t)p;; seed = seed * 1664525u + 1013904223u)
		next(&s, seed >> 20 & 15, seed);
	return 0;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t t;
	for (int i = 1; i <= n; i++)
		if (pthread_create(&t, 0, run, (void *)(uintptr_t)(i * 7919)))
			return 1;
	while (__atomic_load_n(&running, __ATOMIC_SEQ_CST) < n)
		usleep(1000);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
