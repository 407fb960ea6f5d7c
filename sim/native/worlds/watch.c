/* profiler/host/watchdog_windows.c: the sampler calls the CLR about two suspended threads in turn.
 * Meanwhile the watchdog may resume either thread. Each thread must be resumed exactly once. During a
 * call about it, only the watchdog may resume it.
 * CLR 1: the CLR also suspends each thread.
 * SAME 1: both calls are about one thread, which is suspended again. */
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
static uint32_t holds[THREADS + 1]; /* the suspend count of each thread */
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
	sim_range(&holds[i], sizeof holds[i], SIM_BOTH);
	sim_check(holds[i], "a thread is resumed twice");
	return holds[i]--;
}

int world_threads(void) { return 2; }

UNSEEN void world_reset(void)
{
	sim_watch(&state, sizeof state);
	sim_watch(&asked, sizeof asked);
	sim_watch(holds, sizeof holds);
	state = IDLE;
	questions = FIRST;
	looks = let_go = 0;
	asked = 0;
	for (uint64_t i = 0; i <= THREADS; i++) {
		holds[i] = 1 + CLR;
		held[i].handle = i;
	}
}

/* hold is SuspendThread, and what the CLR does. */
UNSEEN static void hold(uint64_t id)
{
	sim_range(&holds[id], sizeof holds[id], SIM_BOTH);
	sim_check(!holds[id], "a thread is held that should run");
	holds[id] = 1 + CLR;
}

void world_thread(int i)
{
	if (i) {
		watch(0);
		return;
	}
	for (uint64_t k = 1; k <= THREADS; k++) {
		uint64_t id = SAME ? 1 : k;
		if (SAME && k == 2)
			hold(id);
		sw_watch_begin(id);
		int let_it_go = sw_watch_end();
		sim_check(sw_watch_let_go() == let_it_go, "the sampler does not know which thread ran on");
		if (let_it_go)
			sim_outcome(k == 1 ? "first let go " : "second let go ");
		for (int n = 0; !let_it_go && n <= CLR; n++)
			ResumeThread((HANDLE)id);
	}
}

UNSEEN void world_end(void)
{
	sim_check(!holds[1] && (SAME || !holds[2]), "a thread stays held");
}
