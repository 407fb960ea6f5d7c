/* Data about a Windows thread: a handle that may suspend it, and its TEB, which contains its stack bounds.
 * Both are obtained while nothing is suspended.
 *
 * Source: winternl.h (NtQueryInformationThread, THREAD_BASIC_INFORMATION); DeallocationStack has the same
 * offset in every x64 TEB. */
#include "platform.h"

#include <string.h>
#include <windows.h>
#include <winternl.h>

enum { TEB_DEALLOCATION_STACK = 0x1478 };

struct basic_information {
	LONG status;
	void *teb;
	HANDLE process, thread;
	ULONG_PTR affinity;
	LONG priority, base_priority;
};

typedef LONG(NTAPI *query_fn)(HANDLE, int, void *, ULONG, ULONG *);

static uint64_t teb_of(HANDLE thread)
{
	static query_fn query;
	if (!query)
		query = (query_fn)(void *)GetProcAddress(GetModuleHandleA("ntdll.dll"), "NtQueryInformationThread");
	struct basic_information b;
	return query && query(thread, 0, &b, sizeof b, NULL) == 0 ? (uint64_t)b.teb : 0;
}

uint64_t sw_thread_self(void) { return GetCurrentThreadId(); }

/* The system knows the thread's current stack, also a fiber's. */
void sw_own_stack(uint64_t tid, uint64_t *thread_id, uint64_t *low, uint64_t *high)
{
	const struct sw_thread *t = sw_thread_by_tid(tid);
	*thread_id = t ? t->thread_id : 0;
	__asm__("movq %%gs:0x10, %0" : "=r"(*low));  /* NT_TIB.StackLimit */
	__asm__("movq %%gs:0x08, %0" : "=r"(*high)); /* NT_TIB.StackBase */
}

/* Opens the handle and finds the TEB of a thread, and returns the thread's id. If the system refuses, the handle
 * is 0, and the stack bounds are unchanged. */
uint64_t sw_thread_bind(struct sw_thread *t, uint32_t os_thread)
{
	const DWORD rights = THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION;
	HANDLE h = OpenThread(rights, FALSE, os_thread);
	t->handle = (uint64_t)h;
	t->teb = h ? teb_of(h) : 0;
	if (t->teb) {
		t->stack_high = (uint64_t)((const NT_TIB *)(uintptr_t)t->teb)->StackBase;
		memcpy(&t->stack_low, (const uint8_t *)(uintptr_t)t->teb + TEB_DEALLOCATION_STACK, sizeof t->stack_low);
	}
	return os_thread;
}

void sw_thread_unbind(struct sw_thread *t)
{
	if (t->handle)
		CloseHandle((HANDLE)(uintptr_t)t->handle);
	t->handle = t->teb = 0;
}

static uint64_t hundreds(FILETIME t) { return (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime; }

/* CPU time of a thread; 0 if unknown. The caller must have claimed the thread, or accept the time of
 * another thread that reuses its handle. */
uint64_t sw_thread_cpu_ns(uint64_t tid)
{
	struct sw_thread *t = sw_thread_by_tid(tid);
	FILETIME made, ended, kernel, user;
	if (!t || !GetThreadTimes((HANDLE)(uintptr_t)t->handle, &made, &ended, &kernel, &user))
		return 0;
	return 100 * (hundreds(kernel) + hundreds(user));
}
