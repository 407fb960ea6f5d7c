/* Whether modules came or went, as the loader tells: it calls on the thread
 * that loads, under its lock, so that the answer is a number counted up.
 *
 * Source: Windows LdrRegisterDllNotification. */
#include "platform.h"

#include <windows.h>

static uint64_t changes = 1;

static void CALLBACK changed(ULONG reason, const void *data, void *context)
{
	(void)reason, (void)data, (void)context;
	__atomic_add_fetch(&changes, 1, __ATOMIC_RELEASE);
}

typedef LONG(NTAPI *register_fn)(ULONG, void(CALLBACK *)(ULONG, const void *, void *), void *, void **);

/* 0 if the loader will tell. */
int sw_loader_init(void)
{
	static void *cookie;
	register_fn f = (register_fn)(void *)GetProcAddress(GetModuleHandleA("ntdll.dll"), "LdrRegisterDllNotification");
	return !f || f(0, changed, NULL, &cookie) != 0;
}

uint64_t sw_loader_changes(void) { return __atomic_load_n(&changes, __ATOMIC_ACQUIRE); }
