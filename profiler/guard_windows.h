/* Saves and restores what the Go runtime changes in a Windows process when it starts: the counterpart of
 * guard.c. Included once by each library that contains Go.
 *
 * Go 1.26 changes four things in src/runtime/os_windows.go (osinit, preventErrorDialogs,
 * initLongPathSupport). They are the error mode, WER's flags, the priority boost of threads, and the
 * process's long-path bit. Children inherit the error mode, which turns crash reports off.
 *
 * Other changes stay. Go adds two vectored handlers and a console control handler, which ignore events that
 * are not Go's. Go also subscribes to suspend and resume of the machine. */
#ifndef SW_GUARD_WINDOWS_H
#define SW_GUARD_WINDOWS_H

#include <stdint.h>
#include <windows.h>

typedef HRESULT(WINAPI *sw_wer_get)(HANDLE, DWORD *);
typedef HRESULT(WINAPI *sw_wer_set)(DWORD);

static struct {
	UINT error_mode;
	BOOL no_boost, have_boost;
	DWORD wer;
	int have_wer;
	uint8_t long_paths;
} sw_before;

enum { PEB_BITS = 3, LONG_PATHS = 0x80 }; /* PEB.BitField, IsLongPathAwareProcess */

static FARPROC sw_system(const char *dll, const char *name) { return GetProcAddress(GetModuleHandleA(dll), name); }

/* NULL if there are none. */
static volatile uint8_t *sw_peb_bits(void)
{
	void *(WINAPI *peb)(void) = (void *(WINAPI *)(void))(void *)sw_system("ntdll.dll", "RtlGetCurrentPeb");
	return peb ? (uint8_t *)peb() + PEB_BITS : NULL;
}

/* Priority 101 runs before the Go runtime's own constructor. */
__attribute__((constructor(101))) static void sw_guard_save(void)
{
	sw_wer_get get = (sw_wer_get)(void *)sw_system("kernel32.dll", "WerGetFlags");
	sw_before.error_mode = GetErrorMode();
	sw_before.have_boost = GetProcessPriorityBoost(GetCurrentProcess(), &sw_before.no_boost);
	sw_before.have_wer = get && get(GetCurrentProcess(), &sw_before.wer) >= 0;
	volatile uint8_t *bits = sw_peb_bits();
	sw_before.long_paths = bits ? *bits & LONG_PATHS : LONG_PATHS;
}

/* Called once, when Go has started. */
static void sw_guard_put_back(void)
{
	sw_wer_set set = (sw_wer_set)(void *)sw_system("kernel32.dll", "WerSetFlags");
	SetErrorMode(sw_before.error_mode);
	if (sw_before.have_boost)
		SetProcessPriorityBoost(GetCurrentProcess(), sw_before.no_boost);
	if (sw_before.have_wer && set)
		set(sw_before.wer);
	if (!sw_before.long_paths) /* the bits exist */
		*sw_peb_bits() &= (uint8_t)~LONG_PATHS;
}

#endif
