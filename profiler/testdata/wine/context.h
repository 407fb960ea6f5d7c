/* GetThreadContext as Windows answers it, for Wine 8, which says nothing of
 * exceptions: asked with CONTEXT_EXCEPTION_REQUEST it must answer with
 * CONTEXT_EXCEPTION_REPORTING. Without that the CLR takes no thread in managed
 * code for one it may redirect: a collection never ends, DoStackSnapshot is
 * always unsafe. A test fixture: the product never includes it, and on real
 * Windows it does nothing.
 *
 * Source: winnt.h; dotnet/runtime src/coreclr/vm/threadsuspend.cpp (who asks). */
#include <string.h>
#include <windows.h>

#include "barrier.h"

enum { SEEDWALK_EXCEPTION_REQUEST = 0x40000000, SEEDWALK_EXCEPTION_FLAGS = 0x18000000 };

static BOOL WINAPI wine_get_thread_context(HANDLE thread, CONTEXT *c)
{
	int asked = (c->ContextFlags & SEEDWALK_EXCEPTION_REQUEST) != 0;
	BOOL ok = GetThreadContext(thread, c);
	if (ok && asked) {
		c->ContextFlags |= 0x80000000; /* CONTEXT_EXCEPTION_REPORTING */
		c->ContextFlags &= ~(DWORD)SEEDWALK_EXCEPTION_FLAGS;
	}
	return ok;
}

/* Puts function in the place of every import of that name by module. */
static void wine_replace(HMODULE module, const char *imported, void *function)
{
	unsigned char *base = (unsigned char *)module;
	IMAGE_NT_HEADERS *nt = (IMAGE_NT_HEADERS *)(base + ((IMAGE_DOS_HEADER *)base)->e_lfanew);
	DWORD rva = nt->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT].VirtualAddress;
	for (IMAGE_IMPORT_DESCRIPTOR *d = (void *)(base + rva); rva && d->Name; d++) {
		IMAGE_THUNK_DATA *name = (void *)(base + d->OriginalFirstThunk), *slot = (void *)(base + d->FirstThunk);
		for (; name->u1.AddressOfData; name++, slot++) {
			if (IMAGE_SNAP_BY_ORDINAL(name->u1.Ordinal))
				continue;
			IMAGE_IMPORT_BY_NAME *import = (void *)(base + name->u1.AddressOfData);
			if (strcmp((const char *)import->Name, imported) != 0)
				continue;
			DWORD old;
			VirtualProtect(slot, sizeof *slot, PAGE_READWRITE, &old);
			slot->u1.Function = (ULONGLONG)(uintptr_t)function;
			VirtualProtect(slot, sizeof *slot, old, &old);
		}
	}
}

/* Gives a CLR what Wine lacks. */
static void wine_patch(HMODULE module)
{
	HMODULE ntdll = GetModuleHandleA("ntdll.dll");
	if (!GetProcAddress(ntdll, "wine_get_version"))
		return;
	wine_replace(module, "GetThreadContext", (void *)wine_get_thread_context);
	if (wine_barrier_init())
		wine_replace(module, "FlushProcessWriteBuffers", (void *)wine_flush_process_write_buffers);
}
