/* What the sampler's suspension does to threads of every kind, in a process
 * without a CLR. Linked with capture_windows.c, threads.c, threads_windows.c,
 * sampler_windows.c and loader_windows.c; run under Wine by profiler/e2e.
 *
 * Prints a line for each thread: what sw_suspend and sw_context answered, and the
 * thread's suspend count before, in between and after. */
#include "../host/platform.h"

#include <stdio.h>
#include <windows.h>

/* callback.c's, which this program does without. */
int sw_utf8(const uint16_t *in, uint32_t units, char *out, int room)
{
	(void)in, (void)units, (void)room;
	out[0] = 0;
	return 0;
}

static volatile LONG spinning;

static DWORD WINAPI spin(void *never)
{
	InterlockedIncrement(&spinning);
	while (!*(volatile int *)never)
		;
	return 0;
}

static int no;

/* How often the thread is suspended, as SuspendThread tells; it is left so. */
static int count(HANDLE h)
{
	DWORD n = SuspendThread(h);
	if (n == (DWORD)-1)
		return -1;
	ResumeThread(h);
	return (int)n;
}

/* Samples a thread the way the profiler does; die ends it in the middle. */
static void sample(const char *name, HANDLE h, uint64_t id, int die)
{
	int before = count(h), inside = -2, context = -2;
	int suspended = sw_suspend(0, id);
	if (suspended == 1) {
		inside = count(h);
		if (die) {
			TerminateThread(h, 7);
			WaitForSingleObject(h, 5000);
		}
		context = sw_context(0);
		sw_resume(0);
	}
	const struct sw_slot *s = sw_slot_at(0);
	printf("%s: suspend %d, context %d%s, counts %d %d %d%s\n", name, suspended, context,
	       context == 1 && s->stack_len > 0 ? " with a stack" : "", before, inside, count(h),
	       suspended == 1 && s->already ? ", held by others" : "");
}

static HANDLE start_at(uint64_t id, LPTHREAD_START_ROUTINE body)
{
	DWORD tid;
	LONG others = spinning;
	HANDLE h = CreateThread(NULL, 0, body, &no, 0, &tid);
	while (h && spinning == others)
		Sleep(1);
	sw_thread_created(id);
	sw_thread_assigned(id, tid);
	return h;
}

static HANDLE start(uint64_t id) { return start_at(id, spin); }

enum { HALF = 1 << 15, ON_IT = 1 << 12 };

/* Says that its stack is twice as large as there is memory for. */
static DWORD WINAPI overstate(void *never)
{
	uint8_t *low = VirtualAlloc(NULL, 2 * HALF, MEM_RESERVE, PAGE_NOACCESS);
	NT_TIB *tib;
	__asm__("mov %%gs:0x30, %0" : "=r"(tib));
	if (!low || !VirtualAlloc(low, HALF, MEM_COMMIT, PAGE_READWRITE))
		return 1;
	tib->StackLimit = low;
	tib->StackBase = low + 2 * HALF;
	InterlockedIncrement(&spinning);
	__asm__ volatile("mov %0, %%rsp\n1:\tpause\n\tcmpl $0, (%1)\n\tje 1b" : : "r"(low + HALF - ON_IT), "r"(never));
	for (;;) /* there is no way back */
		Sleep(1000);
}

int main(void)
{
	if (sw_capture_init(1 << 16) != 0)
		return 1;
	HANDLE plain = start(1);
	sample("a thread that runs", plain, 1, 0);
	sample("the same again", plain, 1, 0);

	HANDLE held = start(2);
	SuspendThread(held);
	SuspendThread(held);
	sample("suspended twice by somebody else", held, 2, 0);
	sample("the same again", held, 2, 0);
	ResumeThread(held);
	ResumeThread(held);
	sample("after they let it go", held, 2, 0);

	HANDLE most = start(3);
	while (SuspendThread(most) != (DWORD)-1)
		;
	int full = count(most) == -1;
	printf("suspended as often as can be: suspend %d, %s\n", sw_suspend(0, 3), full ? "refused by the system" : "not refused");

	HANDLE doomed = start(4);
	sample("ends while it is suspended", doomed, 4, 1);
	sample("has ended", doomed, 4, 0);

	/* OpenThread gives no handle: as with a thread that may not be opened. */
	sw_thread_created(5);
	sw_thread_assigned(5, 0xfffffff0u);
	printf("may not be opened: suspend %d\n", sw_suspend(0, 5));
	printf("never told of: suspend %d\n", sw_suspend(0, 6));

	HANDLE strange = start_at(7, overstate);
	Sleep(100); /* the stack is changed after it has said that it runs */
	sample("half of its stack is no memory", strange, 7, 0);
	const struct sw_slot *s = sw_slot_at(0);
	printf("of it: %u bytes%s\n", (unsigned)s->stack_len, s->truncated ? ", cut" : "");
	sw_thread_of(1)->teb = 1 << 12; /* nothing is ever mapped so low */
	sample("its TEB has gone", plain, 1, 0);
	fflush(stdout);
	TerminateProcess(GetCurrentProcess(), 0);
	return 0;
}
