/* What watchdog_windows.c uses of Windows, for a world on Linux. */
#ifndef SEEDWALK_WORLD_WINDOWS_H
#define SEEDWALK_WORLD_WINDOWS_H

#include <stdint.h>

typedef void *HANDLE;
typedef uint32_t DWORD;
#define WINAPI
enum { THREAD_PRIORITY_HIGHEST = 2 };

DWORD ResumeThread(HANDLE thread);
HANDLE CreateThread(void *, uint64_t, DWORD (*)(void *), void *, DWORD, DWORD *);
int SetThreadPriority(HANDLE, int);
int CloseHandle(HANDLE);
DWORD GetLastError(void);

#endif
