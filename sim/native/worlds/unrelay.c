/* sample/probe/src/relay.c and start.c: the tool sends a signal (BY_RELAY or the real-time one), like
 * send in file_linux.go. Meanwhile the recording ends. With AGAIN, another recording begins and ends
 * too. The signal may arrive at any time after that. Neither the runtime's own handler nor the default
 * action may receive it. */
#include "world.h"

#ifndef CHECKS
#define CHECKS 1 /* the tool looks whether the recording has ended */
#endif
#ifndef OTHER
#define OTHER 0 /* the program has set another handler since */
#endif
#ifndef LATE
#define LATE 0 /* the tool counts the signal after it has looked */
#endif
#ifndef LEAVES
#define LEAVES 0 /* the signal itself asks its thread to end the recording */
#endif
#ifndef TIMER
#define TIMER 0 /* 1: SIGURG was not free, so the signal is that of a timer, which seedwalk does not count */
#endif

#include "handler.c"
#define WITH_START
#include "handler.h"
#include "relay.c"
#define memset probe_memset
#include "start.c"
#undef memset

enum { FREE = SIG_LAST, SIG = BY_RELAY ? SIG_REALTIME : FREE };
static char files[2][SW_HEADER_SIZE + SW_SLOTS * SW_SLOT_SIZE] __attribute__((aligned(4096)));
static uint32_t sent; /* 1: the signal is under way, 2: it never will be */

int sw_silence(struct sw_header *h) { return (void)h, 0; }

int world_threads(void) { return 3; }

static void runtimes_handler(int sig, const struct info *si, struct frame *uc) { (void)sig, (void)si, (void)uc; }
static void others_handler(int sig, const struct info *si, struct frame *uc) { (void)sig, (void)si, (void)uc, sim_check(0, "not run"); }

UNSEEN void world_reset(void)
{
	sim_kernel_reset();
	sim_watch(files, sizeof files);
	sim_watch(&sent, sizeof sent);
	memset(files, 0, sizeof files);
	sent = 0;
	runtimes = 0;
	stays = parked = 0;
	sim_actions[SIGSEGV] = (struct sim_action){(uint64_t)runtimes_handler, SA_SIGINFO | SA_ONSTACK, 0, 1ull << (SIG - 1)};
	sim_actions[SIG_REALTIME] = (struct sim_action){(uint64_t)runtimes_handler, SA_SIGINFO, 0, 0};
	if (TIMER)
		sim_actions[SIGURG].handler = (uint64_t)others_handler;
	sw_shared = (struct sw_header *)files[0];
	take_signals(sw_shared);
	if (LEAVES)
		slots(sw_shared)[0] = (struct sw_slot){.tid = 1002, .op = SW_OP_LEAVE, .ask = 1};
	if (OTHER)
		sim_actions[SIG].handler = (uint64_t)others_handler;
}

static void count_sent(struct sw_header *h)
{
	if (BY_RELAY)
		__atomic_fetch_add(&h->relay_sent, 1, __ATOMIC_SEQ_CST);
	else
		sim_store32(&h->real_sent, 1);
}

static void tool(void)
{
	struct sw_header *h = (struct sw_header *)files[0];
	if (TIMER) {
		sim_store32(&sent, 1);
		return;
	}
	if (!LATE)
		count_sent(h);
	int left = CHECKS && sim_load32(&h->left);
	if (left && BY_RELAY && !LATE)
		__atomic_fetch_sub(&h->relay_sent, 1, __ATOMIC_SEQ_CST);
	if (LATE)
		count_sent(h);
	sim_store32(&sent, left ? 2 : 1);
}

static int is_sent(void *word) { return *(uint32_t *)word != 0; }

UNSEEN static void target(void)
{
	struct info si = {.code = TIMER ? SI_TIMER : SI_QUEUE};
	union { struct frame frame; uint64_t mask[64]; } uc; /* the mask is behind the frame on x86-64 */
	memset(&uc, 0, sizeof uc);
	uint64_t mask = *blocked_mask(&uc.frame) = AGAIN ? ~sw_faults() : ~0ull;
	sim_wait(&sent, sizeof sent, "wait for the signal", is_sent, &sent);
	if (sim_load32(&sent) == 2) {
		sim_outcome("not sent,");
		return;
	}
	sim_syscall(&sim_actions[SIG], SIM_READ, "the signal is delivered");
	uint64_t handler = sim_actions[SIG].handler;
	sim_check(handler != SIG_DFL && handler != (uint64_t)runtimes_handler, "a signal of ours ends the process");
	if (handler == (uint64_t)relay)
		relay(SIG, &si, &uc.frame);
	else if (handler == (uint64_t)sw_handler)
		sw_handler(SIG, &si, &uc.frame);
	sim_check(AGAIN || *blocked_mask(&uc.frame) == mask, "the mask of a thread in a fault changes");
	sim_outcome("taken,");
}

UNSEEN static void again(void)
{
	sw_shared = (struct sw_header *)files[1];
	take_signals(sw_shared);
	sw_end(sw_shared);
}

void world_thread(int i)
{
	switch (i) {
	case 0:
		tool();
		break;
	case 1:
		if (!LEAVES)
			sw_end(sw_shared);
		if (AGAIN)
			again();
		break;
	case 2:
		target();
	}
}

UNSEEN void world_end(void)
{
	uint64_t handler = sim_actions[SIG].handler;
	sim_check(!OTHER || handler == (uint64_t)others_handler, "another handler is replaced");
	sim_check(!LEAVES || handler == (uint64_t)runtimes_handler, "the relay stays though no signal is under way");
	sim_outcome(handler == (uint64_t)relay || handler == SIG_IGN ? " kept" : " put back");
}
