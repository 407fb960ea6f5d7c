/* sample/probe/src/handler.c: the tool sets the bounds of the main thread's stack, and sets them again when
 * the stack has grown. Meanwhile the thread handles a signal, on its own stack (ALT 0) or on its alternate
 * stack (ALT 1). */
#ifndef FIBER
#define FIBER 0 /* the tool sets a fiber's bounds the second time */
#endif
#ifndef LATE
#define LATE 0 /* the tool stores the end after the start */
#endif
#include "world.h"

#define SW_MAX_STACK 1024
#define SW_MAX_CHECKED 512
static void copy_own(void *to, uint64_t from, uint64_t n);
#undef copy_bytes
#define copy_bytes copy_own

#include "handler.c"
#include "handler.h"

enum { FIBER_END = 256, GROWN = 512, LOW = 1024, AT = 1280, HIGH = 1536, SIZE = 8192 };
static uint8_t memory[SIZE] __attribute__((aligned(64))), alternate[SIZE] __attribute__((aligned(64)));
static int unchecked;

void sw_put_back(struct sw_header *h) { (void)h; }

UNSEEN static void copy_own(void *to, uint64_t from, uint64_t n)
{
	uint64_t at = from - (uint64_t)memory;
	sim_check(at >= GROWN && at + n <= HIGH, "more than the thread's stack is copied without a check");
	unchecked = 1;
	memcpy(to, (void *)from, n);
}

int world_threads(void) { return 2; }

UNSEEN void world_reset(void)
{
	slots(recording())[0] = (struct sw_slot){.tid = 1001, .fs = 1};
	unchecked = 0;
}

/* set does what File.SetStack in file_linux.go does. With FIBER, it does what the old version did. */
static void set(uint64_t low, uint64_t high)
{
	struct sw_slot *s = slots(sw_shared);
	if (FIBER)
		sim_store64(&s->low, 0);
	if (!LATE)
		sim_store64(&s->high, (uint64_t)memory + high);
	sim_store64(&s->low, (uint64_t)memory + low);
	if (LATE)
		sim_store64(&s->high, (uint64_t)memory + high);
}

/* interrupt puts the thread on its alternate stack: first is what the kernel saved there. */
UNSEEN static void interrupt(struct frame *uc)
{
	struct frame first = {.regs[REG_SP] = uc->regs[REG_SP]};
	uc->alt_sp = (uint64_t)alternate;
	uc->alt_size = sizeof alternate;
	uc->regs[REG_SP] = uc->alt_sp + SIZE / 4;
	uint64_t at = first_context(uc);
#ifdef __aarch64__
	first.vectors.magic = FPSIMD;
	first.vectors.size = 528;
#else
	enum { BELOW = 432 };
	first.fpstate = (at + BELOW + 63) & ~63ull;
#endif
	memcpy((void *)at, &first, sizeof first);
}

void world_thread(int i)
{
	if (i == 0) {
		set(LOW, HIGH);
		if (FIBER)
			set(0, FIBER_END);
		else
			set(GROWN, HIGH);
		return;
	}
	struct info si = {.code = SI_TIMER, .value = (uint64_t)TAG << 32 | OURS};
	struct frame uc;
	memset(&uc, 0, sizeof uc);
	uc.regs[REG_SP] = (uint64_t)memory + AT;
	if (ALT)
		interrupt(&uc);
	sw_handler(SIGURG, &si, &uc);
}

UNSEEN void world_end(void)
{
	sim_check(sw_shared->head != 0 && !sw_shared->dropped, "a sample is lost");
	sim_outcome(unchecked ? "without a check" : "checked");
}
