/* Resumes a thread that is suspended too long while the CLR is called about it. The CLR's walk may wait
 * for a lock of the system's loader that this thread owns (dotnet/runtime#32286), and nothing else would
 * ever resume it.
 *
 * One word holds the state. The sampler sets it to a new question number when a call begins, and resets it
 * at the end. The watchdog must take the word before it resumes the thread, and the sampler waits
 * meanwhile. So exactly one of them resumes a thread, and a capture of a thread that ran on is dropped.
 *
 * The watchdog sleeps and resumes; it takes no lock and allocates nothing. */
#include "watchdog_windows.h"

#include <windows.h>

#include "hooks.h"
#include "platform.h"

/* A look-up takes microseconds, a whole walk milliseconds. A loaded machine rarely keeps a sampler from
 * the processor for a second. */
enum { TOO_LONG_MS = 1500, LOOK_MS = 250 };

enum { IDLE = 0, TAKEN = 1, RESUMED = 2, FIRST = 3 }; /* questions are numbered from FIRST on */

static uint64_t state;
static uint64_t questions = FIRST;
static HANDLE asked; /* the thread in question, while state is a question's number */
static int let_go;   /* the sampler's own suspension has been undone */

static void let_run(HANDLE thread)
{
	DWORD before;
	do
		before = ResumeThread(thread);
	while (before != (DWORD)-1 && before > 1); /* also undoes the CLR's suspension */
}

static DWORD WINAPI watch(void *unused)
{
	uint64_t seen = IDLE;
	unsigned ms = 0;
	(void)unused;
	for (;;) {
		Sleep(LOOK_MS);
		uint64_t now = __atomic_load_n(&state, __ATOMIC_SEQ_CST);
		ms = now == seen ? ms + LOOK_MS : 0;
		seen = now;
		if (now < FIRST || ms < TOO_LONG_MS)
			continue;
		HANDLE thread = __atomic_load_n(&asked, __ATOMIC_RELAXED); /* the sampler owns it until the watchdog takes the word */
		if (!__atomic_compare_exchange_n(&state, &now, TAKEN, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		let_run(thread);
		__atomic_store_n(&state, RESUMED, __ATOMIC_SEQ_CST);
	}
	return 0;
}

int sw_watch_init(void)
{
	if (sw_hook_unwatched())
		return 0;
	HANDLE h = CreateThread(NULL, 0, watch, NULL, 0, NULL);
	if (!h)
		return (int)GetLastError();
	SetThreadPriority(h, THREAD_PRIORITY_HIGHEST);
	CloseHandle(h);
	return 0;
}

void sw_watch_begin(uint64_t thread_id)
{
	struct sw_thread *t = sw_thread_of(thread_id);
	__atomic_store_n(&asked, t ? (HANDLE)(uintptr_t)t->handle : NULL, __ATOMIC_RELAXED);
	if (asked)
		__atomic_store_n(&state, ++questions, __ATOMIC_SEQ_CST);
	sw_hook_asking();
}

int sw_watch_end(void)
{
	uint64_t own = questions;
	if (!asked || __atomic_compare_exchange_n(&state, &own, IDLE, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return 0;
	while (__atomic_load_n(&state, __ATOMIC_SEQ_CST) != RESUMED)
		__builtin_ia32_pause(); /* while the watchdog resumes it */
	__atomic_store_n(&state, IDLE, __ATOMIC_SEQ_CST);
	return let_go = 1;
}

int sw_watch_let_go(void)
{
	int was = let_go;
	let_go = 0;
	return was;
}
