/* A C program that walks its own stack with the library: what a profiler does
 * with the CONTEXT and the copied stack of a suspended thread. Compiled and run
 * by the tests; docs/embedding.md explains it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "seedwalk.h"

static seedwalk_handle handle;
static int failed;

static void check(const char *what, int result)
{
	if (result != SEEDWALK_OK) {
		printf("%s: %d\n", what, result);
		failed = 1;
	}
}

/* The thread's registers in the order the library wants. */
static seedwalk_registers registers_of(const ucontext_t *u)
{
	static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
				      REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	seedwalk_registers r = {.rip = (uint64_t)u->uc_mcontext.gregs[REG_RIP]};
	for (int i = 0; i < 16; i++)
		r.gpr[i] = (uint64_t)u->uc_mcontext.gregs[order[i]];
	return r;
}

static seedwalk_stack stack_of(uint64_t sp)
{
	pthread_attr_t attr;
	void *low;
	size_t size;
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &low, &size);
	pthread_attr_destroy(&attr);
	uint64_t high = (uint64_t)low + size;
	return (seedwalk_stack){.address = sp, .bytes = (const uint8_t *)sp, .length = high - sp, .low = (uint64_t)low, .high = high};
}

static uint64_t pretend_managed; /* start of the function that plays managed code */

static uint64_t function_from_ip(void *client, uint64_t ip)
{
	(void)client;
	return ip - pretend_managed < 16384 ? 77 : 0;
}

static void show(const char *what, const seedwalk_result *r)
{
	char gap[32], stop[32];
	seedwalk_gap_name(r->gap, gap, sizeof gap);
	seedwalk_stop_name(r->stop, stop, sizeof stop);
	printf("%s: %s, stop %s, gap %s\n", what, r->frames >= 3 ? "frames" : "too few frames", stop, gap);
}

__attribute__((noinline)) static void leaf(void)
{
	ucontext_t u;
	getcontext(&u);
	seedwalk_registers regs = registers_of(&u);
	seedwalk_stack stack = stack_of(regs.gpr[4]);
	seedwalk_frame frames[64];
	seedwalk_result result;
	check("walk", seedwalk_walk(handle, &regs, &stack, frames, 64, &result));
	show("walk", &result);
	for (int i = 0; i < result.frames; i++)
		if (frames[i].trust >= SEEDWALK_TRUST_DOUBTFUL || frames[i].module <= 0)
			printf("frame %d is doubtful\n", i);
	check("merge", seedwalk_merge(handle, &regs, &stack, 0x80004005u, NULL, 0, function_from_ip, NULL, frames, 64, &result));
	show("merge", &result);
}

__attribute__((noinline)) static void middle(void)
{
	leaf();
	__asm__ volatile("");
}

int main(void)
{
	handle = seedwalk_open();
	check("scan", seedwalk_scan(handle));
	check("commit", seedwalk_commit(handle));
	middle();
	printf("a closed handle: %d, null: %d\n", seedwalk_commit(handle + 1), seedwalk_walk(handle, NULL, NULL, NULL, 0, NULL));
	check("close", seedwalk_close(handle));
	return failed;
}
