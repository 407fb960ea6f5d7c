/* The sampler thread, time and errors on Windows. */
#define _WIN32_WINNT 0x0602 /* WaitOnAddress */
#include "platform.h"

#include <stdio.h>
#include <windows.h>

#include "held_windows.h"
#include "hooks.h"
#include "watchdog_windows.h"

const int sw_least_info = 8; /* older runtimes might work, but none was ever tested */
const char sw_least_why[] = "it has no ICorProfilerInfo8";
const char sw_least_clr[] = ".NET Core 2.0";

static HANDLE sampler; /* of the last sampler, used to check whether it is alive */

static DWORD WINAPI life(void *body)
{
	((void (*)(void))body)();
	return 0;
}

int sw_start_sampler(void (*body)(void))
{
	DWORD id;
	if (sampler) /* an earlier sampler, which has ended */
		CloseHandle(sampler);
	sampler = CreateThread(NULL, 0, life, (void *)body, 0, &id);
	if (!sampler)
		return (int)GetLastError();
	/* While the sampler waits for a processor, a suspended thread may be waiting for the sampler. */
	SetThreadPriority(sampler, THREAD_PRIORITY_HIGHEST);
	sw_held_init(id);
	return 0;
}

int sw_window_init(size_t stack_bytes)
{
	sw_hook_init();
	if (sw_loader_init())
		return ERROR_PROC_NOT_FOUND;
	int error = sw_watch_init();
	return error ? error : sw_capture_init(stack_bytes);
}

const int sw_no_memory = ERROR_NOT_ENOUGH_MEMORY;

const char *sw_error_text(int error)
{
	static char text[40];
	snprintf(text, sizeof text, "Windows error %d", error);
	return text;
}

/* Not getenv: the C library copies the environment at its start. */
const char *sw_environment(const char *name)
{
	static char value[512];
	DWORD n = GetEnvironmentVariableA(name, value, sizeof value);
	return n > 0 && n < sizeof value ? value : NULL;
}

/* A timer tick takes many milliseconds here, so short waits yield the processor and check again. */
void sw_sleep_us(unsigned us)
{
	if (us < 1000)
		SwitchToThread();
	else
		Sleep(us / 1000);
}

enum { LONGEST_WAIT_MS = 10 };

/* A sampler that was terminated in its window never releases the thread that it has claimed. */
int sw_sampler_gone(void) { return WaitForSingleObject(sampler, 0) == WAIT_OBJECT_0; }

void sw_wait_while(uint64_t *word, uint64_t value) { WaitOnAddress(word, &value, sizeof value, LONGEST_WAIT_MS); }
void sw_wake(uint64_t *word) { WakeByAddressAll(word); }
