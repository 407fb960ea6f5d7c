/* sample/probe/src/handler.c and local.h: threads take samples while the tool reads the ring. The reader is
 * reader.read of sample/probe/ring.go in C. FREE is the room in the ring at the start. If it is less than
 * two records, a thread does not wait for room, and its sample is dropped. If EVENT is 1, the first thread
 * reports an event with its stack (copy.c) instead of a sample of its timer. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "world.h"

#include "handler.c"
#include "handler.h"
#include "local.h"

#ifndef SAMPLES
#define SAMPLES 1
#endif
#ifndef READS
#define READS 1
#endif
#ifndef SAMPLERS
#define SAMPLERS 2
#endif
#ifndef FREE
#define FREE SW_RING_SIZE
#endif
#ifndef EVENT
#define EVENT 0
#endif
#if EVENT
#include "copy.c"
#endif

enum {
	WANT = 64,
	SIZE = (sizeof(struct sw_record) + SW_MAX_EXTRA + SW_RED_ZONE + WANT + 8 + SW_ALIGN - 1) & ~(SW_ALIGN - 1),
	AT = 7 * SW_RING_SIZE - SIZE - 64, /* head at the start: the second record wraps around the ring's end */
	RECORDS = 16,
};

static uint8_t stacks[SAMPLERS][SW_RED_ZONE + WANT + 64] __attribute__((aligned(64)));
static char *base;
static uint64_t tail, done_at[RECORDS], done_size[RECORDS];
static int done, got[SAMPLERS];

void sw_put_back(struct sw_header *h) { (void)h; }

int world_threads(void) { return SAMPLERS + 1; }

UNSEEN static void map(void)
{
	uint64_t before = SW_BEFORE_RING;
	int fd = memfd_create("ring", 0);
	sim_check(ftruncate(fd, (long)before + SW_RING_SIZE) == 0, "no memory");
	base = mmap(0, before + 2 * SW_RING_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mmap(base, before + SW_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	mmap(base + before + SW_RING_SIZE, SW_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (long)before);
	sim_watch(base, SW_HEADER_SIZE + SW_SLOTS * SW_SLOT_SIZE);
	sim_watch(base + before, SW_RING_SIZE);
	sim_alias(base + before + SW_RING_SIZE, SW_RING_SIZE, SW_RING_SIZE);
	for (int i = 0; i < SAMPLERS; i++)
		memset(stacks[i], i + 1, sizeof stacks[i]);
}

/* lap fills the ring with complete records of the lap before. */
UNSEEN static void lap(void)
{
	for (uint64_t at = AT - SW_RING_SIZE; at < AT; at += SW_ALIGN) {
		struct sw_record *r = (struct sw_record *)(base + SW_BEFORE_RING + at % SW_RING_SIZE);
		r->commit = at | 1;
		r->claim = at | 2;
		r->size = SW_ALIGN;
	}
}

UNSEEN void world_reset(void)
{
	if (!base)
		map();
	struct sw_header *h = sw_shared = (struct sw_header *)base;
	memset(base, 0, SW_BEFORE_RING);
	lap();
	sim_kernel_reset();
	h->tag = 0x5eed;
	h->head = AT;
	tail = h->tail = AT - (SW_RING_SIZE - FREE);
	h->stale = 1ull << 62;
	h->heartbeat = 1;
	for (uint32_t i = 0; i < SAMPLERS; i++) {
		struct sw_slot *s = slots(h) + i;
		s->tid = 1000 + i;
		s->low = (uint64_t)stacks[i];
		s->high = s->low + SW_RED_ZONE + WANT;
		s->timer = 77;
	}
	done = 0;
	memset(got, 0, sizeof got);
}

UNSEEN static void deliver(int i)
{
#if EVENT
	if (i == 0) {
		uint64_t payload = EVENT;
		const struct sw_at what = {.tid = 1000, .id = EVENT};
		const struct kept regs = {.sp = (uint64_t)stacks[0]};
		sw_shared->pid = what.tid;
		sw_shared->main_stack = regs.sp + SW_RED_ZONE + WANT;
		sim_check(sw_take(sw_shared, &what, &payload, sizeof payload, &regs), "no room");
		return;
	}
#endif
	struct info si = {.code = SI_TIMER, .value = (uint64_t)sw_shared->tag << 32 | (uint64_t)i};
	struct frame uc;
	memset(&uc, 0, sizeof uc);
	for (int r = 0; r < SW_REGS; r++)
		uc.regs[r] = (uint64_t)(i + 1);
	uc.regs[REG_SP] = (uint64_t)stacks[i] + SW_RED_ZONE;
	sw_handler(SIGURG, &si, &uc);
}

UNSEEN static void judge(struct sw_record *r, uint64_t size)
{
	sim_range(r, (uint32_t)size, SIM_READ);
	uint8_t *stack = (uint8_t *)(r + 1) + SW_MAX_EXTRA;
	int event = EVENT && r->why == SW_EVENT && r->tid == 1000;
	uint32_t of = event ? 0 : r->slot;
	if (of >= SAMPLERS) {
		sim_check(0, "a record of no thread");
		return;
	}
	if (event) {
		sim_check(r->payload_size == sizeof(uint64_t) && *(uint64_t *)stack == EVENT && r->event == EVENT, "an event is not whole");
		stack += r->payload_size;
	} else
		sim_check(r->why == SW_TIMER && r->regs[0] == of + 1, "a record is another's, or not whole");
	sim_check(r->stack_size == SW_RED_ZONE + WANT && r->weight == 1 && r->flags == 0, "a record is another's, or not whole");
	for (uint32_t i = 0; i < r->stack_size; i++)
		sim_check(stack[i] == of + 1, "a stack is another's, or not whole");
	sim_check(++got[of] <= SAMPLES, "a record is read twice");
}

UNSEEN static int done_before(uint64_t at)
{
	for (int i = 0; i < done; i++)
		if (done_at[i] == at)
			return i + 1;
	return 0;
}

UNSEEN static void read_ring(void)
{
	struct sw_header *h = sw_shared;
	uint64_t head = sim_load64(&h->head);
	sim_check(head - tail <= SW_RING_SIZE, "more is claimed than there is");
	if (tail < AT) /* the old records were read before */
		tail = AT;
	for (uint64_t at = tail; at < head;) {
		struct sw_record *r = (struct sw_record *)(base + SW_BEFORE_RING + at % SW_RING_SIZE);
		if (sim_load64(&r->claim) != (at | 2))
			break;
		uint64_t size = sim_load32(&r->size);
		if (size != SIZE || size > head - at) {
			sim_check(0, "no record can be there");
			return;
		}
		if (!done_before(at) && sim_load64(&r->commit) == (at | 1)) {
			judge(r, size);
			done_at[done] = at;
			done_size[done++] = size;
		}
		at += size;
	}
	for (int i; (i = done_before(tail));)
		tail += done_size[i - 1];
	sim_store64(&h->tail, tail);
}

void world_thread(int i)
{
	for (int k = 0; k < (i < SAMPLERS ? SAMPLES : READS); k++) {
		if (i < SAMPLERS)
			deliver(i);
		else
			read_ring();
	}
}

UNSEEN void world_end(void)
{
	struct sw_header *h = sw_shared;
	int sum = 0;
	char text[40];
	read_ring();
	for (int i = 0; i < SAMPLERS; i++)
		sum += got[i];
	sim_check(sum + (int)h->dropped == SAMPLERS * SAMPLES, "a sample is lost and not counted");
	sim_check(h->head == tail, "room is not given back");
	snprintf(text, sizeof text, "%d read, %d dropped", sum, (int)h->dropped);
	sim_outcome(text);
}
