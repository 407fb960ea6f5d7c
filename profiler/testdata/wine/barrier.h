/* FlushProcessWriteBuffers as Windows does it, for Wine 8, where it does nothing.
 * The CLR stops its threads with it: without it a thread may enter managed code
 * unseen while a collection moves its objects, and the process dies or hangs, more
 * often the more cores there are. A test fixture, as context.h.
 *
 * Taking the access to a page away that was just written makes the system
 * interrupt every core that runs the process, which is a barrier on each.
 * Source: Win32 FlushProcessWriteBuffers; dotnet/coreclr#1057 (the same by mprotect). */
#include <windows.h>

static volatile LONG *wine_barrier_page;
static SRWLOCK wine_barrier_lock = SRWLOCK_INIT;

static int wine_barrier_init(void)
{
	wine_barrier_page = VirtualAlloc(NULL, 4096, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
	return wine_barrier_page != NULL;
}

static void WINAPI wine_flush_process_write_buffers(void)
{
	DWORD old;
	AcquireSRWLockExclusive(&wine_barrier_lock);
	VirtualProtect((void *)wine_barrier_page, 4096, PAGE_READWRITE, &old);
	InterlockedIncrement(wine_barrier_page);
	VirtualProtect((void *)wine_barrier_page, 4096, PAGE_NOACCESS, &old);
	ReleaseSRWLockExclusive(&wine_barrier_lock);
}
