/* capi/examples/own_protocol_windows.c: the sampler takes a thread that ends. Its entry is then used for
 * another thread. Each thread that is suspended must be resumed, by a handle that is open. */
#include "native.h"

#include "windows.h"

#include <stdatomic.h>

static int is_unclaimed(void *word);
#define Sleep(ms) ((void)(ms), sim_wait((void *)&claimed, sizeof claimed, "wait for the sampler", is_unclaimed, 0))
#include "own_protocol_windows.c"

enum { ENDING = 7, NEXT };
static HANDLE const ending = (HANDLE)ENDING, next = (HANDLE)NEXT; /* as numbers: their IDs */
static uint32_t held, closed;					   /* how often ending is suspended; whether its handle is closed */
static uint64_t its_stack[8];
static NT_TIB tib = {1};

static int is_unclaimed(void *word) { return (void)word, claimed != ENDING; }

/* used checks that a handle is open, and makes the check a step of the exploration. */
UNSEEN static int used(HANDLE h)
{
	sim_range(&closed, sizeof closed, SIM_READ);
	sim_check(h != ending || !closed, "a closed handle is used");
	return h != 0;
}

UNSEEN DWORD SuspendThread(HANDLE h)
{
	if (!used(h))
		return (DWORD)-1;
	sim_check((uint64_t)h == sample.thread, "another thread is suspended");
	sim_range(&held, sizeof held, SIM_BOTH);
	return held++;
}

UNSEEN int GetThreadContext(HANDLE h, CONTEXT *c)
{
	c->Rsp = (uint64_t)its_stack;
	return used(h);
}

UNSEEN DWORD ResumeThread(HANDLE h)
{
	if (!used(h))
		return (DWORD)-1;
	sim_outcome("sampled ");
	sim_range(&held, sizeof held, SIM_BOTH);
	return held--;
}

UNSEEN int CloseHandle(HANDLE h)
{
	(void)h;
	sim_range(&closed, sizeof closed, SIM_WRITE);
	return closed = 1;
}

HANDLE CreateThread(void *a, uint64_t b, DWORD (*f)(void *), void *c, DWORD d, DWORD *e) { return (void)a, (void)b, (void)f, (void)c, (void)d, (void)e, (void *)1; }
HANDLE OpenThread(DWORD a, int b, DWORD c) { return (void)a, (void)b, (void)c, (void *)1; }
void GetCurrentThreadStackLimits(ULONG_PTR *low, ULONG_PTR *high) { *low = *high = 0; }
int seedwalk_open(const seedwalk_options *o, seedwalk_handle *h) { return (void)o, *h = 1, 0; }
int seedwalk_close(seedwalk_handle h) { return (void)h, 0; }
int seedwalk_scan(seedwalk_handle h) { return (void)h, 0; }
int seedwalk_commit(seedwalk_handle h) { return (void)h, 0; }
int seedwalk_walk(seedwalk_handle h, const seedwalk_walk_request *q, seedwalk_result *r) { return (void)h, (void)q, (void)r, -1; }
int seedwalk_merge(seedwalk_handle h, const seedwalk_merge_request *q, seedwalk_result *r) { return (void)h, (void)q, (void)r, -1; }

/* The CLR answers the call that comes before the first sample. */
static result snapshot(void *self, uint64_t thread, result (*f)(uint64_t, uint64_t, uint64_t, uint32_t, void *, void *))
{
	static uint8_t registers[1232]; /* a CONTEXT of x86-64 */
	(void)self, (void)thread;
	return f(1, 0, 0, sizeof registers, registers, 0);
}

static void *functions[SNAPSHOT + 1] = {[SNAPSHOT] = snapshot}, *runtime = functions;

int world_threads(void) { return 2; }

UNSEEN void world_reset(void)
{
	static int primed, again;
	struct thread *t = &threads[0];
	*t = (struct thread){.id = ENDING, .handle = ending, .low = 1, .high = (ULONG_PTR)(its_stack + 8), .tib = &tib};
	info = &runtime;
	if (!primed++)
		take(t, &again);
	held = closed = 0;
	claimed = 0;
	sim_watch((void *)t, sizeof *t);
	sim_watch((void *)&claimed, sizeof claimed);
	sim_watch(&held, sizeof held);
	sim_watch(&closed, sizeof closed);
}

void world_thread(int i)
{
	struct thread *t = &threads[0];
	int again;
	if (!i) {
		take(t, &again);
		return;
	}
	destroyed(0, ENDING);
	t->id = NEXT;
	t->handle = next;
}

UNSEEN void world_end(void)
{
	sim_check(!held, "a thread stays suspended");
}
