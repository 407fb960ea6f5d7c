/* What watchdog_windows.c and own_protocol_windows.c use of Windows, for worlds on Linux. */
#ifndef SEEDWALK_WORLD_WINDOWS_H
#define SEEDWALK_WORLD_WINDOWS_H

#include <stdint.h>

typedef void *HANDLE;
typedef uint32_t DWORD;
typedef uint64_t ULONG_PTR;
typedef struct { ULONG_PTR StackLimit; } NT_TIB;
typedef struct { DWORD ContextFlags; uint64_t Rsp; } CONTEXT;
#define WINAPI
#define __declspec(attribute)
enum { FALSE, CONTEXT_FULL, CONTEXT_FLOATING_POINT };
enum { THREAD_PRIORITY_HIGHEST = 2, THREAD_SUSPEND_RESUME = 2, THREAD_GET_CONTEXT = 8, THREAD_QUERY_INFORMATION = 64 };

DWORD SuspendThread(HANDLE thread);
DWORD ResumeThread(HANDLE thread);
int GetThreadContext(HANDLE, CONTEXT *);
HANDLE OpenThread(DWORD access, int inherit, DWORD id);
void GetCurrentThreadStackLimits(ULONG_PTR *low, ULONG_PTR *high);
HANDLE CreateThread(void *, uint64_t, DWORD (*)(void *), void *, DWORD, DWORD *);
int SetThreadPriority(HANDLE, int);
int CloseHandle(HANDLE);
DWORD GetLastError(void);

#endif
