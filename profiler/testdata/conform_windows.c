/* The same profiler for Windows: what differs is inside, but for Wine's
 * GetThreadContext where the CLR is in the program itself. */
#include "conform.c"
#include "wine/context.h"

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved)
{
	(void)self, (void)reserved;
	if (reason == DLL_PROCESS_ATTACH)
		wine_patch(GetModuleHandleA(NULL));
	return TRUE;
}
