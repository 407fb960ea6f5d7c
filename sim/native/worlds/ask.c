/* sample/probe/src/handler.c: the tool asks a thread for a sample and then for a timer, while the thread
 * takes the first signal. ONE 1: the tool asks for a timer only, and an event of the thread has the same
 * signal. */
#include "world.h"

#include "handler.c"

static char file[SW_BEFORE_RING + 2 * SW_RING_SIZE] __attribute__((aligned(4096)));
static uint8_t stack[SW_RED_ZONE + 64] __attribute__((aligned(64)));
static uint32_t sends; /* signals of the tool */

void sw_put_back(struct sw_header *h) { (void)h; }
uint64_t sw_current(void) { return 0; }
int sw_answer(struct sw_header *h, const struct info *si, uint32_t tid) { return (void)h, (void)si, (void)tid, 1; }
void sw_objects(struct sw_header *h, const struct sw_slot *s, const uint64_t *regs, const uint64_t *words, uint64_t size, void *out) { (void)h, (void)s, (void)regs, (void)words, (void)size, (void)out; }

int world_threads(void) { return 2; }

UNSEEN void world_reset(void)
{
	struct sw_header *h = sw_shared = (struct sw_header *)file;
	struct sw_slot *s = slots(h);
	sim_kernel_reset();
	sim_watch(file, SW_HEADER_SIZE + SW_SLOTS * SW_SLOT_SIZE);
	sim_watch(&sends, sizeof sends);
	memset(file, 0, sizeof file);
	sends = 0;
	h->tag = 0x5eed;
	h->timer_signal = SIGURG;
	h->period = 1000000;
	h->stale = 1000000;
	h->heartbeat = 1000;
	s->tid = 1001;
	s->low = (uint64_t)stack;
	s->high = s->low + sizeof stack;
	s->fs = 1;
}

UNSEEN static void deliver(int code)
{
	struct info si = {.code = code, .value = (uint64_t)sw_shared->tag << 32};
	struct frame uc;
	memset(&uc, 0, sizeof uc);
	uc.regs[REG_SP] = (uint64_t)stack + SW_RED_ZONE;
	sw_handler(SIGURG, &si, &uc);
}

/* ask is File.Ask of file_linux.go. */
static void ask(uint32_t op)
{
	struct sw_slot *s = slots(sw_shared);
	sim_store32(&s->op, op);
	if (sim_load32(&s->ask) == sim_load32(&s->answered))
		sim_store32(&s->ask, sim_load32(&s->ask) + 1);
	sim_store32(&sends, sim_load32(&sends) + 1);
}

static int was_sent(void *n) { return *(uint32_t *)n != 0; }
static int both_sent(void *n) { return *(uint32_t *)n == 2; }

void world_thread(int i)
{
	if (i == 0) {
		if (!ONE)
			ask(SW_OP_SAMPLE);
		ask(SW_OP_ARM);
		return;
	}
	if (ONE)
		deliver(POLL_IN); /* of an event: nothing orders it behind the request */
	/* one signal is pending at a time: the second is lost unless the first was taken */
	sim_wait(&sends, sizeof sends, "wait for a signal", was_sent, &sends);
	uint32_t taken = sim_load32(&sends);
	deliver(SI_QUEUE);
	if (taken == 1 && !ONE) {
		sim_wait(&sends, sizeof sends, "wait for a signal", both_sent, &sends);
		(void)sim_load32(&sends); /* the kernel orders what was written before a signal */
		deliver(SI_QUEUE);
	}
}

UNSEEN void world_end(void)
{
	struct sw_header *h = sw_shared;
	struct sw_slot *s = slots(h);
	int live = 0;
	for (int k = 0; k < sim_made; k++)
		live += sim_timers[k];
	sim_check(live == (int)h->timers && live == (s->timer != 0), "a timer is left, or one that is gone is counted");
	sim_check(s->answered == s->ask, "a request is never answered");
	sim_check(h->dropped == 0, "lost");
	sim_outcome(s->timer ? "armed" : "sampled");
}
