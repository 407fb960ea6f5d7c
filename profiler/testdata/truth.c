/* The native half of Truth.cs: functions that record themselves in the shadow stack of their thread. The
 * shadow is in the thread's own stack memory, so a copy of the stack contains its own truth.
 *
 * Built without frame pointers: a chain of RBP does not find these frames. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

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

/* Passes a string, so that the runtime makes an IL stub that marshals. */
NOINLINE int truth_text(struct shadow *s, const char *text)
{
	push(s, TRUTH_TEXT);
	int n = (int)strlen(text);
	work(2000);
	pop(s);
	return n;
}

/* Threads for a program whose core library cannot start one. */
enum { THREADS = 8 };
static pthread_t threads[THREADS];
static void (*thread_body)(int);

static void *thread_main(void *number)
{
	thread_body((int)(intptr_t)number);
	return NULL;
}

void truth_threads(void (*body)(int), int n)
{
	thread_body = body;
	for (int i = 0; i < n && i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, thread_main, (void *)(intptr_t)i))
			abort();
	for (int i = 0; i < n && i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int truth_number(const char *text) { return atoi(text); }

/* truth_rest waits for some seconds, or until there is a line on standard input. */
void truth_rest(int seconds)
{
	struct pollfd in = {0, POLLIN, 0};
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (time_t end = now.tv_sec + seconds; now.tv_sec < end; clock_gettime(CLOCK_MONOTONIC, &now)) {
		char line[8];
		if (poll(&in, 1, 1000 * (int)(end - now.tv_sec)) > 0) {
			if (read(0, line, sizeof line) > 0)
				return;
			in.fd = -1; /* the input has ended, and poll only waits */
		}
	}
}

void truth_say(const char *text)
{
	if (write(1, text, strlen(text)) < 0 || write(1, "\n", 1) < 0)
		abort();
}

static __thread struct shadow *interrupted;

static void on_alternate(int sig)
{
	struct shadow *s = interrupted;
	(void)sig;
	push(s, TRUTH_ON_ALTERNATE);
	truth_spin(s, 20000);
	pop(s);
}

/* A handler on the alternate stack that the runtime makes for each of its threads; the interrupted code is
 * on the thread's own stack. */
NOINLINE void truth_alternate(struct shadow *s)
{
	push(s, TRUTH_ALTERNATE);
	if (!interrupted) {
		struct sigaction act = {.sa_handler = on_alternate, .sa_flags = SA_ONSTACK | SA_RESTART};
		interrupted = s;
		sigaction(SIGUSR2, &act, NULL);
	}
	raise(SIGUSR2);
	pop(s);
}

static __thread ucontext_t home, fibre;
static __thread uint64_t fibre_scenario;
static __thread callback_fn fibre_calls;

/* The root of a fiber has its own shadow, since only the fiber's stack is copied. */
NOINLINE void truth_fibre(void)
{
	_Alignas(16) char room[offsetof(struct shadow, entries) + 64 * sizeof(uint64_t)] = {0}; /* for few entries */
	struct shadow *s = (void *)room;
	__asm__("" : "+r"(s)); /* the compiler need not know how small it is */
	s->version = 1;
	s->scenario = fibre_scenario;
	__atomic_store_n(&s->magic, 0x4853574b44454553, __ATOMIC_RELEASE);
	push(s, TRUTH_FIBRE);
	truth_recurse(s, 20);
	pop(s);
	__atomic_store_n(&s->magic, 0, __ATOMIC_RELEASE);
	swapcontext(&fibre, &home);
}

/* The same with managed code on the fibre. */
NOINLINE void calling_fibre(void)
{
	_Alignas(16) char room[offsetof(struct shadow, entries) + 64 * sizeof(uint64_t)] = {0};
	struct shadow *s = (void *)room;
	__asm__("" : "+r"(s));
	s->version = 1;
	s->scenario = fibre_scenario;
	__atomic_store_n(&s->magic, 0x4853574b44454553, __ATOMIC_RELEASE);
	push(s, TRUTH_CALLING_FIBRE);
	truth_call(s, fibre_calls, 3);
	pop(s);
	__atomic_store_n(&s->magic, 0, __ATOMIC_RELEASE);
	swapcontext(&fibre, &home);
}

/* Finds room below an address. If the requested place is taken, an emulator (qemu-user) returns one above
 * it. */
static char *room_below(char *own, size_t size)
{
	for (uint64_t away = 1ull << 32; away < (uint64_t)own; away *= 2) { /* the runtime's heap may be there */
		char *p = mmap(own - away, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p != MAP_FAILED && p < own)
			return p;
		if (p != MAP_FAILED)
			munmap(p, size);
	}
	abort();
}

/* Runs on separate stacks between guard pages, which are unmapped afterwards. They are below the thread's
 * own: the runtime assumes that its frames are sorted by address, and its collector does not scan a stack
 * above. */
static void on_fibres(struct shadow *main, int rounds, void (*body)(void))
{
	const size_t page = 4096, size = 32 * page;
	fibre_scenario = main->scenario;
	for (int i = 0; i < rounds; i++) {
		char *stack = room_below(__builtin_frame_address(0), size + 2 * page);
		if (mprotect(stack + page, size, PROT_READ | PROT_WRITE))
			abort();
		getcontext(&fibre);
		fibre.uc_stack.ss_sp = stack + page;
		fibre.uc_stack.ss_size = size;
		fibre.uc_link = NULL;
		makecontext(&fibre, body, 0);
		swapcontext(&home, &fibre);
		munmap(stack, size + 2 * page);
	}
}

NOINLINE void truth_fibres(struct shadow *main, int rounds)
{
	push(main, TRUTH_FIBRES);
	on_fibres(main, rounds, truth_fibre);
	pop(main);
}

NOINLINE void truth_call_on_fibres(struct shadow *main, callback_fn f, int rounds)
{
	push(main, TRUTH_CALL_ON_FIBRES);
	fibre_calls = f;
	on_fibres(main, rounds, calling_fibre);
	pop(main);
}
