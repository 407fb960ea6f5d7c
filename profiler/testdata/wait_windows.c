/* How long the unloading of a module waits for the sampler, which may be asking for
 * the names of its methods. Linked with events.c, capture_windows.c, threads.c,
 * threads_windows.c, sampler_windows.c and loader_windows.c; run under Wine by
 * profiler/e2e. Sleeps are as short as the system has them. */
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

static DWORD WINAPI leave(void *ms)
{
	Sleep((DWORD)(uintptr_t)ms);
	sw_resolve_leave();
	return 0;
}

/* By the exact clock: Wine updates that of GetTickCount late on a busy machine. */
static unsigned waited(void)
{
	LARGE_INTEGER begin, end, second;
	QueryPerformanceFrequency(&second);
	QueryPerformanceCounter(&begin);
	sw_unload();
	QueryPerformanceCounter(&end);
	return (unsigned)((end.QuadPart - begin.QuadPart) * 1000 / second.QuadPart);
}

static void report(const char *name, unsigned ms, unsigned least, unsigned most)
{
	if (ms >= least && ms <= most)
		printf("%s: as it should be\n", name);
	else
		printf("%s: waited %u ms, not %u to %u\n", name, ms, least, most);
}

int main(void)
{
	report("no names are asked for", waited(), 0, 500);
	sw_resolve_enter();
	CloseHandle(CreateThread(NULL, 0, leave, (void *)400, 0, NULL));
	report("names are had soon", waited(), 300, 900);
	sw_resolve_enter();
	report("names are never had", waited(), 950, 10000);
	return 0;
}
