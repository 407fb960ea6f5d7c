/* sample/probe/src/handler.c: one thread takes signals of every kind, one after the other. */
#include "world.h"

#include "handler.c"

static char file[SW_BEFORE_RING + 2 * SW_RING_SIZE] __attribute__((aligned(4096)));
static uint8_t stack[SW_RED_ZONE + 64] __attribute__((aligned(64)));

void sw_put_back(struct sw_header *h) { (void)h; }
uint64_t sw_current(void) { return 0; }
int sw_answer(struct sw_header *h, const struct info *si, uint32_t tid) { return (void)h, (void)si, (void)tid, 1; }
void sw_objects(struct sw_header *h, const struct sw_slot *s, const uint64_t *regs, const uint64_t *words, uint64_t size, void *out) { (void)h, (void)s, (void)regs, (void)words, (void)size, (void)out; }

int world_threads(void) { return 1; }

UNSEEN void world_reset(void)
{
	struct sw_header *h = sw_shared = (struct sw_header *)file;
	struct sw_slot *s = slots(h);
	sim_kernel_reset();
	sim_watch(file, SW_HEADER_SIZE + SW_SLOTS * SW_SLOT_SIZE);
	memset(file, 0, sizeof file);
	h->tag = 0x5eed;
	h->timer_signal = SIGURG;
	h->period = 1000000;
	h->stale = 1000000;
	h->heartbeat = 1000;
	s->tid = 1000;
	s->low = (uint64_t)stack;
	s->high = s->low + sizeof stack;
	s->fs = 1;
}

/* last returns the newest record. */
UNSEEN static const struct sw_record *last(void)
{
	struct sw_header *h = sw_shared;
	const struct sw_record *r = 0;
	for (uint64_t at = 0; at < h->head; at += r->size)
		r = (const struct sw_record *)(ring(h) + at);
	return r;
}

UNSEEN static void deliver(struct info si, int slot, uint32_t tag)
{
	struct frame uc;
	memset(&uc, 0, sizeof uc);
	uc.regs[REG_SP] = (uint64_t)stack + SW_RED_ZONE;
	si.value = (uint64_t)tag << 32 | OURS | (uint64_t)slot;
	sw_handler(SIGURG, &si, &uc);
}

void world_thread(int i)
{
	struct sw_header *h = sw_shared;
	struct sw_slot *s = slots(h);
	(void)i;
	s->op = SW_OP_ARM;
	s->ask = 1;
	deliver((struct info){.code = SI_QUEUE}, 0, 0x5eed);
	sim_check(s->timer == 1 && last()->why == SW_ARMED && last()->weight == 0, "a thread that makes its timer counts as CPU time");
	deliver((struct info){.code = SI_TIMER, .overrun = 3}, 0, 0x5eed);
	sim_check(last()->why == SW_TIMER && last()->weight == 4, "the overrun of a timer is lost");

	sim_timers[sim_made++] = 1;
	deliver((struct info){.code = SI_TIMER, .timer = 1}, 0, 0xdead);
	sim_check(sim_timers[0] && !sim_timers[1], "a timer of an earlier recording stays");

	s->tid = 1007;
	uint64_t signals = h->signals;
	deliver((struct info){.code = SI_QUEUE}, 0, 0x5eed);
	sim_check(h->signals == signals, "a thread answers for another");
	s->tid = 1000;

	sim_unset = 1;
	slots(h)[1].tid = 1001;
	arm(h, slots(h) + 1);
	sim_check(!slots(h)[1].timer && slots(h)[1].error == 22 && !sim_timers[sim_made - 1], "a timer that cannot be set stays");
	sim_unset = 0;

	h->left = SW_LEFT;
	h->ending = 1;
	deliver((struct info){.code = SI_QUEUE}, 0, 0x5eed);
	sim_check(h->signals == signals, "a recording that has ended is served");

	inside = 1;
	sw_forked();
	sim_check(!sw_shared && !inside, "a child goes on with its parent's recording");
}

void world_end(void) {}
