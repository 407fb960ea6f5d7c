/* sample/probe/src/handler.c and start.c: a thread takes a sample for an old recording. The tool of
 * that recording is gone (LEFT 0), or the recording has ended (LEFT 1). Meanwhile another recording
 * begins in the same place, and makes a second thread take a sample.
 * SESSION 1: the session of the old recording is still ending.
 * LIVES 1: the tool of the old recording lives. */
#ifndef SESSION
#define SESSION 0
#endif
#ifndef LIVES
#define LIVES 0
#endif
#define SW_PATIENCE 2
#include "world.h"

#include "handler.c"
#define WITH_START
#include "handler.h"
#include "relay.c"
#define memset probe_memset
#include "start.c"
#undef memset

enum {
	WANT = 64,
	RINGS = 2 * SW_RING_SIZE,
	SIZE = (sizeof(struct sw_record) + SW_MAX_EXTRA + SW_RED_ZONE + WANT + 8 + SW_ALIGN - 1) & ~(SW_ALIGN - 1),
};
static char file[SW_BEFORE_RING + RINGS + SW_READS * SW_READ_ROOM] __attribute__((aligned(4096)));
static uint8_t stacks[3][SW_RED_ZONE + WANT + 64] __attribute__((aligned(64)));
static uint32_t begins; /* 1: the new recording has begun, 2: it could not */

int sw_silence(struct sw_header *h) { return (void)h, SESSION; }
void sw_forget(void) {}

int world_threads(void) { return 3; }

UNSEEN static void slot(struct sw_header *h, int thread)
{
	struct sw_slot *s = slots(h);
	s->tid = (uint32_t)(1000 + thread);
	s->low = (uint64_t)stacks[thread];
	s->high = s->low + SW_RED_ZONE + WANT;
	s->op = SW_OP_SAMPLE;
	s->fs = 1;
	s->ask = 1;
}

UNSEEN void world_reset(void)
{
	struct sw_header *h = sw_shared = (struct sw_header *)file;
	sim_kernel_reset();
	sim_watch(file, SW_HEADER_SIZE + SW_SLOTS * SW_SLOT_SIZE);
	sim_watch(file + SW_BEFORE_RING, SIZE);
	sim_watch(&begins, sizeof begins);
	sim_watch(&inside, sizeof inside);
	memset(file, 0, SW_BEFORE_RING + SIZE);
	for (int i = 0; i < 3; i++)
		memset(stacks[i], i + 1, sizeof stacks[i]);
	begins = inside = 0;
	stays = parked = 0;
	h->tag = 0x5eed;
	h->stale = LEFT || LIVES ? 1000000 : 1; /* the tool of a recording that has ended may be alive */
	h->left = LEFT ? SW_LEFT : 0;
	slot(h, 0);
}

UNSEEN static void deliver(int i, uint32_t tag)
{
	struct info si = {.code = SI_QUEUE, .value = (uint64_t)tag << 32};
	struct frame uc;
	memset(&uc, 0, sizeof uc);
	for (int r = 0; r < SW_REGS; r++)
		uc.regs[r] = (uint64_t)(i + 1);
	uc.regs[REG_SP] = (uint64_t)stacks[i] + SW_RED_ZONE;
	sw_handler(SIGURG, &si, &uc);
}

UNSEEN static void begin(void)
{
	int fd;
	struct sw_header *h = prepare(&fd);
	if (h) {
		sim_range(slots(h), SW_SLOT_SIZE, SIM_WRITE);
		slot(h, 2);
	}
	sim_store32(&begins, h ? 1 : 2);
}

static int has_begun(void *word) { return *(uint32_t *)word != 0; }

void world_thread(int i)
{
	switch (i) {
	case 0:
		deliver(0, 0x5eed);
		break;
	case 1:
		begin();
		break;
	case 2:
		sim_wait(&begins, sizeof begins, "wait for the recording", has_begun, &begins);
		if (sim_load32(&begins) == 1)
			deliver(2, sw_shared->tag);
	}
}

UNSEEN void world_end(void)
{
	struct sw_header *h = sw_shared;
	struct sw_record *r = (struct sw_record *)ring(h);
	uint8_t *stack = (uint8_t *)(r + 1) + SW_MAX_EXTRA;
	if (begins == 2) {
		h->left = 0;
		h->ending = 1;
		sim_check(begun(h, -1, 0) == -2 && h->left == SW_LEFT, "a recording that is ended while it begins goes on");
		sim_outcome("does not begin");
		return;
	}
	sim_check(!LIVES, "the recording of a living tool is replaced");
	sim_check(h->head == SIZE, "the ring of the new recording has another's record, or none");
	sim_check(r->commit == 1 && r->tid == 1002 && r->stack_size == SW_RED_ZONE + WANT, "the record is another's, or not whole");
	for (int k = 0; k < REG_SP; k++)
		sim_check(r->regs[k] == 3, "the registers are another's, or not whole");
	for (uint32_t k = 0; k < SW_RED_ZONE + WANT; k++)
		sim_check(stack[k] == 3, "the stack is another's, or not whole");
	sim_outcome("begins");
}
