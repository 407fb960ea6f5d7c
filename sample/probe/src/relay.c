/* The relay reaches threads whose signal mask blocks the sampling signals.
 *
 * The runtime handles a bad address on its alternate stack, which has no room for a second handler. So guard
 * (start.c) makes that handler block our signals. If the fault becomes an exception, the handler never
 * returns: our signals stay blocked in that thread, and in threads that it creates. The runtime's own signal,
 * which stops a thread for a collection, is blocked in that handler too, but the runtime unblocks it
 * afterwards. The relay intercepts that signal. The tool sends it to a thread that blocks ours; the relay
 * restores the thread's mask and serves the request.
 *
 * The mask is not restored while the fault's own signal is blocked. Until then the runtime, which already
 * runs on the thread's own stack, reads the context that the kernel saved on the alternate stack, and a
 * handler that starts there would overwrite it. */
#include "local.h"

/* The runtime's handler. It is kept after the recording: see sw_unrelay. */
static uint64_t runtimes;

/* One of our signals was still pending when a recording ended: the relay stays from then on. */
static int stays;

static void relay(int sig, const struct info *si, struct frame *uc)
{
	struct sw_header *h = sw_shared;
	if (si->code != SI_QUEUE || !h) { /* the runtime sends its own by tgkill */
		((void (*)(int, const struct info *, struct frame *))(uintptr_t)runtimes)(sig, si, uc);
		return;
	}
	__atomic_fetch_add(&h->relayed, 1, __ATOMIC_ACQ_REL);
	if (!(*blocked_mask(uc) & sw_faults()))
		*blocked_mask(uc) &= ~sw_signals(h);
	sw_handler(sig, si, uc);
}

/* held returns the only signal that the SIGSEGV handler blocks, or 0 if that is not the runtime's handler. */
static int held(void)
{
	struct action a;
	if (sigaction_raw(SIGSEGV, 0, &a) || a.handler == SIG_DFL || a.handler == SIG_IGN || !(a.flags & SA_ONSTACK))
		return 0;
	for (int sig = SIG_REALTIME; sig <= SIG_LAST; sig++)
		if (a.mask == 1ull << (sig - 1))
			return sig;
	return 0;
}

/* sw_relay installs the relay in front of the runtime's handler. It must run before guard changes masks. */
void sw_relay(struct sw_header *h)
{
	struct action a;
	int sig = held();
	if (!sig || sigaction_raw(sig, 0, &a) || a.handler == SIG_DFL || a.handler == SIG_IGN || !(a.flags & SA_SIGINFO))
		return;
	if (a.handler != (uint64_t)relay) {
		runtimes = a.handler;
		a.handler = (uint64_t)relay;
		if (sigaction_raw(sig, &a, 0))
			return;
	}
	h->relay = (uint32_t)sig;
}

/* sw_unrelay restores the runtime's handler, unless one of our signals is still pending. The
 * runtime's handler would apply the default action to it, which ends the process. So the relay stays
 * for the life of the process and forwards the runtime's signals. The tool counts a signal
 * before it checks whether the recording has ended, and sends none after that. */
void sw_unrelay(struct sw_header *h)
{
	struct action a;
	int sig = (int)h->relay;
	if (!sig)
		return;
	if (__atomic_load_n(&h->relay_sent, __ATOMIC_SEQ_CST) != __atomic_load_n(&h->relayed, __ATOMIC_ACQUIRE))
		stays = 1;
	if (stays || sigaction_raw(sig, 0, &a) || a.handler != (uint64_t)relay)
		return;
	a.handler = runtimes;
	sigaction_raw(sig, &a, 0);
}
