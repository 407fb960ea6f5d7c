//go:build linux

/* When the Go runtime starts, it takes over signals and adds SA_ONSTACK to existing handlers. The CLR's
 * suspension handler then overflows its small alternate stack (golang/go#78883, dotnet/runtime#127320). So
 * every action is saved before Go starts and restored after, except for SIGURG, with which Go preempts its
 * own goroutines. */
#define _GNU_SOURCE
#include "callback.h"

#include <signal.h>

static struct sigaction saved[_NSIG];
static unsigned char have[_NSIG];

/* Priority 101 runs before the Go runtime's own constructor. */
__attribute__((constructor(101))) static void save(void)
{
	for (int s = 1; s < _NSIG; s++)
		have[s] = sigaction(s, NULL, &saved[s]) == 0;
}

/* Runs once: later changes come from other code. */
void sw_go_started(void)
{
	static int done;
	if (__atomic_exchange_n(&done, 1, __ATOMIC_SEQ_CST))
		return;
	for (int s = 1; s < _NSIG; s++)
		if (have[s] && s != SIGURG && s != SIGKILL && s != SIGSTOP)
			sigaction(s, &saved[s], NULL);
}
