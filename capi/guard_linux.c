/* When the Go runtime starts, it takes over signals and adds SA_ONSTACK to existing handlers. The CLR's
 * suspension handler then overflows its small alternate stack (golang/go#78883, dotnet/runtime#127320). Go
 * starts when the library is loaded, before any code that is linked with it can run. So the library saves
 * every action before Go starts, and the first seedwalk_open restores those that Go has changed.
 *
 * Handlers that were set since stay. SIGURG, with which Go preempts its own goroutines, stays Go's. */
#define _GNU_SOURCE
#include "guard_linux.h"

#include <signal.h>
#include <stddef.h>

static struct sigaction saved[_NSIG];
static unsigned char have[_NSIG];

/* The last priority before constructors without one, such as the Go runtime's: handlers that a program's
 * own constructors with a priority have set are preserved. */
__attribute__((constructor(65534))) static void save(void)
{
	for (int s = 1; s < _NSIG; s++)
		have[s] = sigaction(s, NULL, &saved[s]) == 0;
}

#ifdef SW_ARCHIVE
#include <dlfcn.h>

/* The shared library is linked as one that is never unloaded. The archive cannot require that of the
 * library that it becomes a part of. The CLR unloads a profiler whose Initialize fails, but Go's threads
 * run on, so the code must stay. */
__attribute__((constructor(65534))) static void pin(void)
{
	Dl_info self;
	if (dladdr((void *)pin, &self) && self.dli_fname)
		dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}
#endif

int sw_guard_signals(void) { return _NSIG; }

static int guarded(int s) { return have[s] && s != SIGURG && s != SIGKILL && s != SIGSTOP; }

/* The current handler of signal s, 0 if we must not change it. */
uint64_t sw_guard_handler(int s)
{
	struct sigaction now;
	if (!guarded(s) || sigaction(s, NULL, &now) != 0 || now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)
		return 0;
	return (uint64_t)(uintptr_t)now.sa_sigaction;
}

void sw_guard_restore(int s)
{
	if (guarded(s))
		sigaction(s, &saved[s], NULL);
}

/* Removes SA_ONSTACK from a handler that is otherwise unchanged. */
void sw_guard_flags(int s)
{
	struct sigaction now;
	if (guarded(s) && sigaction(s, NULL, &now) == 0 && now.sa_sigaction == saved[s].sa_sigaction && now.sa_flags == (saved[s].sa_flags | SA_ONSTACK))
		sigaction(s, &saved[s], NULL);
}
