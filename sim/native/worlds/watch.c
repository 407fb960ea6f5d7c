/* profiler/host/watchdog_windows.c: the sampler asks the CLR about two held threads in turn, while
 * the watchdog may let either go. Each thread must run on once, and not while it is asked about
 * unless the watchdog says so. */
#include "native.h"

#include "windows.h"

static int over(void);
static int is_resumed(void *word);
#define Sleep(ms) \
	if (over()) \
	return 0
#define __builtin_ia32_pause() sim_wait(&state, sizeof state, "wait for the watchdog", is_resumed, 0)
#include "watchdog_windows.c"

enum { THREADS = 2, LOOKS = 9 };
static struct sw_thread held[THREADS + 1];
static uint32_t resumes[THREADS + 1];
static int looks;

static int over(void) { return ++looks > LOOKS; }
static int is_resumed(void *word) { return (void)word, state == RESUMED; }
struct sw_thread *sw_thread_of(uint64_t id) { return &held[id]; }
HANDLE CreateThread(void *a, uint64_t b, DWORD (*f)(void *), void *c, DWORD d, DWORD *e) { return (void)a, (void)b, (void)f, (void)c, (void)d, (void)e, (void *)1; }
int SetThreadPriority(HANDLE h, int to) { return (void)h, to; }
int CloseHandle(HANDLE h) { return (void)h, 1; }
DWORD GetLastError(void) { return 0; }

UNSEEN DWORD ResumeThread(HANDLE thread)
{
	uint64_t i = (uint64_t)thread;
	sim_range(&resumes[i], sizeof resumes[i], SIM_BOTH);
	sim_check(!resumes[i]++, "a thread runs on that is asked about, or is resumed twice");
	return 1;
}

int world_threads(void) { return 2; }

UNSEEN void world_reset(void)
{
	sim_watch(&state, sizeof state);
	sim_watch(&asked, sizeof asked);
	sim_watch(resumes, sizeof resumes);
	state = IDLE;
	questions = FIRST;
	looks = let_go = 0;
	asked = 0;
	for (uint64_t i = 0; i <= THREADS; i++) {
		resumes[i] = 0;
		held[i].handle = i;
	}
}

void world_thread(int i)
{
	if (i) {
		watch(0);
		return;
	}
	for (uint64_t id = 1; id <= THREADS; id++) {
		sw_watch_begin(id);
		if (sw_watch_end())
			sim_outcome(id == 1 ? "first let go " : "second let go ");
		else
			ResumeThread((HANDLE)id);
	}
}

UNSEEN void world_end(void)
{
	sim_check(resumes[1] == 1 && resumes[2] == 1, "a thread stays held");
}
