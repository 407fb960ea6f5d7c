/* The same profiler for Windows, and what Windows would do in Wine's place:
 * - a CLR that is in the program itself has the functions that Wine lacks;
 * - a CLR that ends its process says with what code;
 * - with CONFORM_TRAP, every thread is in the kernel's exception handling: none is
 *   one the CLR may redirect.
 * Source: winnt.h (CONTEXT_EXCEPTION_REPORTING, CONTEXT_EXCEPTION_ACTIVE). */
#include <stdio.h>
#include <stdlib.h>

#define WIN32_LEAN_AND_MEAN /* its COM would declare our exports */
#include "wine/context.h"

/* Wine's ends the process with a code of its own; on Windows it is somebody's who
 * asks later. After a return the CLR ends the process itself. */
static VOID WINAPI fail_fast(EXCEPTION_RECORD *exception, CONTEXT *context, DWORD flags) { (void)exception, (void)context, (void)flags; }

static VOID WINAPI exit_process(UINT code)
{
	fprintf(stderr, "conform: the CLR ends the process with exit code %08x\n", code);
	fflush(stderr);
	ExitProcess(code);
}

static BOOL WINAPI trapped_context(HANDLE thread, CONTEXT *c)
{
	BOOL ok = GetThreadContext(thread, c);
	c->ContextFlags |= 0x80000000 | 0x08000000;
	return ok;
}

/* The CLR is a DLL, or in the program itself. */
static void windows_ready(void)
{
	if (!GetProcAddress(GetModuleHandleA("ntdll.dll"), "wine_get_version"))
		return;
	HMODULE clr = GetModuleHandleA("coreclr.dll");
	clr = clr ? clr : GetModuleHandleA(NULL);
	wine_replace(clr, "RaiseFailFastException", (void *)fail_fast);
	wine_replace(clr, "ExitProcess", (void *)exit_process);
	if (getenv("CONFORM_TRAP"))
		wine_replace(clr, "GetThreadContext", (void *)trapped_context);
}

#include "conform.c"

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved)
{
	(void)self, (void)reserved;
	if (reason == DLL_PROCESS_ATTACH)
		wine_patch(GetModuleHandleA(NULL));
	return TRUE;
}
