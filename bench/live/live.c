// Walks its own stack, 30 frames deep, as a program does that wants to know where it
// is: by unw_backtrace of nongnu libunwind, by seedwalk_walk, and by seedwalk_walk_batch
// of 64 walks a call. Each takes its registers itself and reads the stack where it lies.
//
// Usage: live          read lines "u N", "s N" or "b N" (N times 64 walks) and answer
//                      "ns frames" of each
//
// Sources: libunwind(3), unw_backtrace(3); capi/seedwalk.h.
//
// Before anything is timed the callers' return addresses of all three must be equal, or
// it ends with 3.
#define _GNU_SOURCE
#include "../../capi/seedwalk.h"
#include <libunwind.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

enum { ROOM = 64, BATCH = 64, DEPTH = 30 };

static seedwalk_handle handle;
static uint64_t high; // of this thread's stack
static seedwalk_sample samples[BATCH];
static ucontext_t contexts[BATCH];
static seedwalk_frame frames[BATCH][ROOM];
static seedwalk_walk_request requests[BATCH];
static seedwalk_result results[BATCH];
static const seedwalk_walk_request *asked[BATCH];
static seedwalk_result *answered[BATCH];
static int32_t errors[BATCH];
static void *addresses[ROOM];

// take notes the registers that a caller could still want, as a signal handler would
// have them; a system call as of getcontext is not needed for that.
static inline __attribute__((always_inline)) void take(int i)
{
	greg_t *g = contexts[i].uc_mcontext.gregs;
	__asm__ volatile("lea 0(%%rip), %%rax\n\tmov %%rax, %c[ip](%[g])\n\tmov %%rsp, %c[sp](%[g])\n\tmov %%rbp, %c[bp](%[g])\n\t"
			 "mov %%rbx, %c[bx](%[g])\n\tmov %%r12, %c[r12](%[g])\n\tmov %%r13, %c[r13](%[g])\n\t"
			 "mov %%r14, %c[r14](%[g])\n\tmov %%r15, %c[r15](%[g])"
			 :
			 : [g] "r"(g), [ip] "i"(8 * REG_RIP), [sp] "i"(8 * REG_RSP), [bp] "i"(8 * REG_RBP), [bx] "i"(8 * REG_RBX),
			   [r12] "i"(8 * REG_R12), [r13] "i"(8 * REG_R13), [r14] "i"(8 * REG_R14), [r15] "i"(8 * REG_R15)
			 : "rax", "memory");
	samples[i].address = (uint64_t)g[REG_RSP];
	samples[i].stack = (const uint8_t *)(uintptr_t)g[REG_RSP];
	samples[i].length = high - (uint64_t)g[REG_RSP];
}

static __attribute__((noinline)) int by_unwind(void)
{
	int n = unw_backtrace(addresses, ROOM);
	__asm__ volatile("" ::: "memory");
	return n;
}

static __attribute__((noinline)) int by_walk(void)
{
	take(0);
	if (seedwalk_walk(handle, &requests[0], &results[0]) != SEEDWALK_OK)
		exit(2);
	return results[0].frames;
}

static __attribute__((noinline)) int by_batch(void)
{
	seedwalk_batch b = { sizeof b, BATCH, asked, answered, errors };
	int n = 0;
	for (int i = 0; i < BATCH; i++)
		take(i);
	if (seedwalk_walk_batch(handle, &b) != SEEDWALK_OK)
		exit(2);
	for (int i = 0; i < BATCH; i++)
		n += results[i].frames;
	return n;
}

// check compares a walk by the library, the last of a batch or a single one, with that by
// unw_backtrace. The first two addresses differ: they lie in the function that walked,
// and in this one behind its call.
static void check(int batch)
{
	int n = by_unwind(), i = batch ? BATCH - 1 : 0, ours;
	if (batch)
		by_batch();
	else
		by_walk();
	ours = results[i].frames;
	if (n < DEPTH || ours != n) {
		fprintf(stderr, "%d frames by unw_backtrace, %d by seedwalk, verdict %d, stop %d\n", n, ours, results[i].verdict, results[i].stop);
		exit(3);
	}
	for (int k = 2; k < n; k++)
		if (frames[i][k].ip != (uint64_t)(uintptr_t)addresses[k]) {
			fprintf(stderr, "frame %d: %p by unw_backtrace, %llx by seedwalk\n", k, addresses[k], (unsigned long long)frames[i][k].ip);
			exit(3);
		}
}

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void answer(void)
{
	char what;
	long times;
	check(0);
	check(1);
	while (scanf(" %c %ld", &what, &times) == 2) {
		uint64_t count = 0, begin = now();
		for (long i = 0; i < times; i++) {
			if (what == 'b')
				count += (uint64_t)by_batch();
			else
				for (int k = 0; k < BATCH; k++)
					count += (uint64_t)(what == 'u' ? by_unwind() : by_walk());
		}
		printf("%llu %llu\n", (unsigned long long)(now() - begin), (unsigned long long)count);
		fflush(stdout);
	}
}

static __attribute__((noinline)) void descend(int n)
{
	if (n > 0)
		descend(n - 1);
	else
		answer();
	__asm__ volatile("" ::: "memory");
}

static void prepare(void)
{
	pthread_attr_t a;
	void *low;
	size_t size;
	if (pthread_getattr_np(pthread_self(), &a) || pthread_attr_getstack(&a, &low, &size))
		exit(2);
	high = (uint64_t)(uintptr_t)low + size;
	for (int i = 0; i < BATCH; i++) {
		samples[i].size = sizeof samples[i];
		samples[i].layout = SEEDWALK_CONTEXT_UCONTEXT;
		samples[i].context = &contexts[i];
		samples[i].context_size = sizeof contexts[i];
		samples[i].low = (uint64_t)(uintptr_t)low;
		samples[i].high = high;
		requests[i].size = sizeof requests[i];
		requests[i].room = ROOM;
		requests[i].sample = &samples[i];
		requests[i].frames = frames[i];
		results[i].size = sizeof results[i];
		asked[i] = &requests[i];
		answered[i] = &results[i];
	}
}

int main(void)
{
	prepare();
	if (seedwalk_open(NULL, &handle) != SEEDWALK_OK || seedwalk_scan(handle) != SEEDWALK_OK || seedwalk_commit(handle) != SEEDWALK_OK)
		return 2;
	descend(DEPTH - 7);
	return 0;
}
