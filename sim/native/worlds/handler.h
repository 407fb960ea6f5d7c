/* What worlds of sample/probe/src/handler.c share: stubs of the rest of the probe, and a recording. */
#ifndef SEEDWALK_WORLD_HANDLER_H
#define SEEDWALK_WORLD_HANDLER_H

#define TAG 0x5eed

#ifndef WITH_START
void sw_restorer(void) {}
#endif
uint64_t sw_current(void) { return 0; }
int sw_answer(struct sw_header *h, const struct info *si, uint32_t tid) { return (void)h, (void)si, (void)tid, 1; }
void sw_objects(struct sw_header *h, const struct sw_slot *s, const uint64_t *regs, const uint64_t *words, uint64_t size, void *out) { (void)h, (void)s, (void)regs, (void)words, (void)size, (void)out; }

static char mapped[SW_BEFORE_RING + 2 * SW_RING_SIZE] __attribute__((aligned(4096)));
static uint8_t stack[SW_RED_ZONE + 64] __attribute__((aligned(64)));

/* recording begins a recording without threads. */
UNSEEN static struct sw_header *recording(void)
{
	struct sw_header *h = sw_shared = (struct sw_header *)mapped;
	sim_kernel_reset();
	sim_watch(mapped, SW_HEADER_SIZE + SW_SLOTS * SW_SLOT_SIZE);
	memset(mapped, 0, sizeof mapped);
	h->tag = TAG;
	h->timer_signal = SIGURG;
	h->period = h->stale = 1000000;
	h->heartbeat = 1000;
	return h;
}

/* add gives a thread a slot. Its samples have a stack. */
UNSEEN static struct sw_slot *add(struct sw_slot *s, uint32_t tid)
{
	s->tid = tid;
	s->low = (uint64_t)stack;
	s->high = s->low + sizeof stack;
	s->fs = 1;
	return s;
}

/* take_signal runs the handler of a signal to the thread of a slot. */
UNSEEN static void take_signal(struct info si, int slot, uint32_t tag)
{
	struct frame uc;
	memset(&uc, 0, sizeof uc);
	uc.regs[REG_SP] = (uint64_t)stack + SW_RED_ZONE;
	si.value = (uint64_t)tag << 32 | OURS | (uint64_t)slot;
	sw_handler(SIGURG, &si, &uc);
}

#endif
