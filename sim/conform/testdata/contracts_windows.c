/* The same profiler for Windows, with what Wine lacks for a CLR to suspend its
 * threads. */
#include <stdio.h>
#include <stdlib.h>

#define WIN32_LEAN_AND_MEAN /* its COM would declare our exports */
#include "wine/context.h"

#include "contracts.c"

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved)
{
	(void)self, (void)reserved;
	if (reason == DLL_PROCESS_ATTACH)
		wine_patch(GetModuleHandleA(NULL));
	return TRUE;
}
