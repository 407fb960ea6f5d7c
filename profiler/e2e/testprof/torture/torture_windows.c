//go:build torture

/* Makes one mistake of a sampler on purpose, to prove that the tests of the window and of ThreadDestroyed can
 * fail. SEEDWALK_TORTURE names the mistake. The window is the time in which a thread is suspended.
 *
 * A thread of ours watches the window. If a call there does not return within DEADLOCK_MS, the thread reports a
 * deadlock without taking a lock, and ends the process. */
#include "torture.h"

#include <string.h>
#include <windows.h>

#include "held_windows.h"
#include "hooks.h"
#include "platform.h"

enum mistake { NONE, HEAP, LOADER, ENVIRONMENT, LOOKUP, THREADS, LATE, UNGUARDED, DIE, UNSEEN, CARELESS, UNWATCHED, CAREFUL, MISTAKES };
static const char *const names[MISTAKES] = {"none", "heap", "loader", "environment", "lookup", "threads", "late", "unguarded", "die", "unseen", "careless", "unwatched", "careful"};

/* Larger than what a heap serves without its lock. */
enum { LARGE = 70000, DEADLOCK_MS = 2000, LOOK_MS = 20, DEADLOCK_CODE = 99, LATE_NS = 3000000, LINGER_MS = 5 };

static enum mistake mistake;
static uint64_t windows; /* suspensions so far */
static uint64_t inside;  /* when the call in the window began, ms; 0: outside */
static uint64_t passing; /* the thread that ThreadDestroyed was last called for */
static DWORD lingering;  /* a slot of fibre-local storage */

static void say(const char *text)
{
	DWORD written;
	WriteFile(GetStdHandle(STD_ERROR_HANDLE), text, (DWORD)strlen(text), &written, NULL);
}

static void say_number(uint64_t n)
{
	char text[24], *p = text + sizeof text - 1;
	*p = 0;
	do
		*--p = (char)('0' + n % 10);
	while (n /= 10);
	say(p);
}

/* The watching thread. It never runs managed code, so it is never suspended. */
static DWORD WINAPI watch(void *unused)
{
	(void)unused;
	for (;;) {
		Sleep(LOOK_MS);
		uint64_t since = __atomic_load_n(&inside, __ATOMIC_ACQUIRE);
		if (!since || GetTickCount64() - since < DEADLOCK_MS)
			continue;
		say("torture: deadlock in window ");
		say_number(windows);
		say(", mistake ");
		say(names[mistake]);
		say("\n");
		TerminateProcess(GetCurrentProcess(), DEADLOCK_CODE);
	}
	return 0;
}

/* Runs when a thread ends, after the CLR has forgotten it. Until it returns, the thread can be suspended. */
static void WINAPI linger(void *unused)
{
	(void)unused;
	Sleep(LINGER_MS);
}

void sw_hook_init(void)
{
	const char *want = sw_environment("SEEDWALK_TORTURE");
	for (int i = 0; want && i < MISTAKES; i++)
		if (strcmp(want, names[i]) == 0)
			mistake = i;
	lingering = FlsAlloc(linger);
	HANDLE h = CreateThread(NULL, 0, watch, NULL, 0, NULL);
	if (h)
		CloseHandle(h);
}

void sw_hook_window(const struct sw_slot *s)
{
	char value[8];
	DWORD64 base;
	windows++;
	__atomic_store_n(&inside, GetTickCount64(), __ATOMIC_RELEASE);
	switch (mistake) {
	case HEAP:
		HeapFree(GetProcessHeap(), 0, HeapAlloc(GetProcessHeap(), 0, LARGE));
		break;
	case LOADER:
		GetModuleHandleA("ntdll.dll");
		break;
	case ENVIRONMENT:
		GetEnvironmentVariableA("PATH", value, sizeof value);
		break;
	case LOOKUP:
		RtlLookupFunctionEntry((DWORD64)(uintptr_t)s->stack, &base, NULL);
		break;
	case UNGUARDED: /* so that the CLR finds no lock taken when it ends the process */
		ResumeThread((HANDLE)(uintptr_t)s->handle);
		break;
	case UNSEEN: /* the same, but the tool does not learn of it */
	case DIE:    /* as if another thread had called ExitProcess */
		say("torture: the sampler ends\n");
		if (mistake == UNSEEN)
			sw_held_set(0);
		__atomic_store_n(&inside, 0, __ATOMIC_RELEASE); /* no deadlock of the window */
		TerminateThread(GetCurrentThread(), 0);
		break;
	default:
		break;
	}
	__atomic_store_n(&inside, 0, __ATOMIC_RELEASE);
}

/* Asks for unwind data, as the CLR's walk does at a helper's frame. That deadlocks if the suspended thread is in
 * the loader. Careless and unwatched also ask about such threads. Unwatched and careful have no watchdog. */
void sw_hook_asking(void)
{
	DWORD64 base;
	if (mistake >= CARELESS)
		RtlLookupFunctionEntry((DWORD64)(uintptr_t)sw_slot_at(0)->stack, &base, NULL); /* in no image */
}

int sw_hook_careless(void) { return mistake == CARELESS || mistake == UNWATCHED; }

int sw_hook_unwatched(void) { return mistake == UNWATCHED || mistake == CAREFUL; }

int sw_torture_go_begin(void)
{
	if (mistake != THREADS)
		return 0;
	__atomic_store_n(&inside, GetTickCount64(), __ATOMIC_RELEASE);
	return 1;
}

void sw_torture_go_end(void) { __atomic_store_n(&inside, 0, __ATOMIC_RELEASE); }

/* LATE is no mistake: the sampler loses its processor at the worst moment, until the claimed thread is in
 * ThreadDestroyed, or for LATE_NS. */
void sw_hook_before_suspend(uint64_t thread_id)
{
	if (mistake != LATE)
		return;
	for (uint64_t end = sw_now_ns() + LATE_NS; sw_now_ns() < end; SwitchToThread())
		if (__atomic_load_n(&passing, __ATOMIC_ACQUIRE) == thread_id)
			return;
}

int sw_hook_unguarded(uint64_t thread_id)
{
	__atomic_store_n(&passing, thread_id, __ATOMIC_RELEASE);
	if (mistake != UNGUARDED)
		return 0;
	FlsSetValue(lingering, &lingering);
	return 1;
}
