/* Patches the program it is loaded into: for a CLR that is in the program itself,
 * which only the program's own import table leads to. launch.c loads it before
 * the program runs. A test fixture. */
#include "context.h"

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved)
{
	(void)reserved;
	if (reason == DLL_PROCESS_ATTACH) {
		DisableThreadLibraryCalls(self);
		wine_patch(GetModuleHandleA(NULL));
	}
	return TRUE;
}
