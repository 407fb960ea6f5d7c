/* What the events' part of the probe asks of Windows. A thread's block (TEB, winternl.h)
 * has its number and where its stack begins. */
#ifndef SEEDWALK_SYS_WINDOWS_H
#define SEEDWALK_SYS_WINDOWS_H

#include <stddef.h>
#include <stdint.h>
#include <windows.h>

#undef NEAR /* a keyword of compilers for 16 bits */

#define P(x) ((uint64_t)(uintptr_t)(x))

static inline uint32_t own_tid(void) { return GetCurrentThreadId(); }

static inline uint64_t stack_top(void)
{
	uint64_t base; /* NT_TIB.StackBase */
	__asm__ volatile("mov %%gs:8, %0" : "=r"(base));
	return base;
}

static inline uint64_t now(void)
{
	LARGE_INTEGER at, frequency; /* neither call leaves user mode */
	QueryPerformanceCounter(&at);
	QueryPerformanceFrequency(&frequency);
	uint64_t f = (uint64_t)frequency.QuadPart, t = (uint64_t)at.QuadPart;
	return t / f * 1000000000u + t % f * 1000000000u / f;
}

#endif
