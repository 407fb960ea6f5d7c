/* A thread that is held too long while the CLR is asked about it is let go. The
 * CLR's walk may wait for a lock of the system's loader, which that thread owns
 * (dotnet/runtime#32286): nobody else would ever resume it.
 *
 * One word says how it stands. The sampler counts a question up as it begins and
 * takes the word back at the end; the watchdog takes the word first, and only then
 * resumes. While it does the sampler waits: a thread is resumed by one of the two,
 * and what was captured of one that ran on is thrown away.
 *
 * The watchdog sleeps and resumes; it takes no lock and allocates nothing. */
#include "watchdog_windows.h"

#include <windows.h>

#include "hooks.h"
#include "platform.h"

/* A look-up takes microseconds, a whole walk milliseconds, a sampler that is kept
 * from the processor by a loaded machine not often a second. */
enum { TOO_LONG_MS = 1500, LOOK_MS = 250 };

enum { IDLE = 0, TAKEN = 1, RESUMED = 2, FIRST = 3 }; /* questions are numbered from FIRST on */

static uint64_t state;
static uint64_t questions = FIRST;
static HANDLE asked; /* about whom, while state is a question's number */
static int let_go;   /* the sampler's own suspension is no more */

static void let_run(HANDLE thread)
{
	DWORD before;
	do
		before = ResumeThread(thread);
	while (before != (DWORD)-1 && before > 1); /* the CLR's suspension too */
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
		HANDLE thread = asked; /* the sampler's until the word is ours */
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
	asked = t ? (HANDLE)(uintptr_t)t->handle : NULL;
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
		__builtin_ia32_pause(); /* for as long as the watchdog takes to resume it */
	__atomic_store_n(&state, IDLE, __ATOMIC_SEQ_CST);
	return let_go = 1;
}

int sw_watch_let_go(void)
{
	int was = let_go;
	let_go = 0;
	return was;
}
