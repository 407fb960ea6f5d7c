/* Copies that application threads make of their own stacks in callbacks: a pool of slots without a lock. A
 * thread claims a free slot, fills it, and publishes it; the sampler frees it. Nothing here waits: the
 * runtime may be in any state. */
#include "sampler.h"

#include <string.h>

enum { MOST_BYTES = 1 << 18 };
enum { FREE, FILLING, WHOLE };

static struct sw_copied copies[SW_COPIES];
static uint64_t stack_room, dropped, turn;

int sw_copies_init(size_t stack_bytes)
{
	stack_room = stack_bytes < MOST_BYTES ? stack_bytes : MOST_BYTES;
	for (int i = 0; i < SW_COPIES; i++) {
		copies[i].stack = sw_reserve(stack_room);
		if (!copies[i].stack)
			return sw_no_memory;
	}
	return 0;
}

uint64_t sw_copies_dropped(void) { return __atomic_load_n(&dropped, __ATOMIC_RELAXED); }

struct sw_copied *sw_copy_take(int i)
{
	if (i < 0 || i >= SW_COPIES || __atomic_load_n(&copies[i].state, __ATOMIC_ACQUIRE) != WHOLE)
		return NULL;
	return &copies[i];
}

void sw_copy_done(struct sw_copied *c) { __atomic_store_n(&c->state, FREE, __ATOMIC_RELEASE); }

static struct sw_copied *free_slot(void)
{
	uint64_t first = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED);
	for (uint64_t i = 0; i < SW_COPIES; i++) {
		struct sw_copied *c = &copies[(first + i) % SW_COPIES];
		uint32_t none = FREE;
		if (c->stack && __atomic_compare_exchange_n(&c->state, &none, FILLING, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return c;
	}
	__atomic_add_fetch(&dropped, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void fill(struct sw_copied *c)
{
	uint64_t from = c->regs[5], len = stack_room;
	sw_own_stack(c->tid, &c->thread_id, &c->stack_low, &c->stack_high);
	int own = from >= c->stack_low && from < c->stack_high;
	if (own && c->stack_high - from < len)
		len = c->stack_high - from;
	c->stack_addr = from;
	c->stack_len = sw_copy_own(c->stack, from, len, own);
	if (!own) { /* a fiber's, or that of a thread that the CLR has not reported: copy what is readable */
		c->stack_low = 0;
		c->stack_high = from + c->stack_len;
	}
	c->truncated = own && c->stack_high - from > c->stack_len;
}

/* The registers are those of this function, at one point in it. The walk begins here, and this function's
 * unwind data describe what the compiler has saved. */
SW_EXPORT __attribute__((noinline)) int seedwalk_sampler_copy(uint64_t tag)
{
	if (!sw_sampler_is_open())
		return SEEDWALK_NOT_OPEN;
	struct sw_copied *c = free_slot();
	if (!c)
		return SEEDWALK_FULL;
	uint64_t *r = c->regs;
	__asm__ volatile(
		"lea 0f(%%rip), %%rax\n"
		"mov %%rax, 0(%0)\n"
		"mov %%rbx, 32(%0)\n"
		"mov %%rsp, 40(%0)\n"
		"mov %%rbp, 48(%0)\n"
		"mov %%rsi, 56(%0)\n"
		"mov %%rdi, 64(%0)\n"
		"mov %%r12, 104(%0)\n"
		"mov %%r13, 112(%0)\n"
		"mov %%r14, 120(%0)\n"
		"mov %%r15, 128(%0)\n"
		"0:\n" : : "r"(r) : "rax", "memory");
	c->tag = tag;
	c->tid = sw_thread_self();
	fill(c);
	__atomic_store_n(&c->state, WHOLE, __ATOMIC_RELEASE);
	return SEEDWALK_OK;
}
