/* Captures what a walk needs of a Windows thread: suspends it, reads its CONTEXT, and copies its stack.
 *
 * THE SUSPENDED WINDOW lasts from sw_suspend to sw_resume. Code in the window makes only system calls on
 * handles that were opened before, and reads the target's own stack. It uses no heap, no loader, no
 * environment, no RtlLookupFunctionEntry, and no log: the suspended thread may hold any of their locks.
 *
 * Sources: Win32 SuspendThread, GetThreadContext; winnt.h (CONTEXT, NT_TIB). */
#include "platform.h"

#include <string.h>
#include <windows.h>

#include "held_windows.h"
#include "hooks.h"
#include "watchdog_windows.h"

_Static_assert(sizeof(CONTEXT) == SW_CONTEXT_BYTES, "the layout of CONTEXT");

static struct sw_slot slots[1];
static CONTEXT context, seed;
static size_t stack_room;
static LARGE_INTEGER frequency;

struct sw_slot *sw_slot_at(int i)
{
	(void)i; /* one thread at a time */
	return &slots[0];
}

/* Write every page once: the first write to a page makes the system look for memory, which should not
 * happen in the window. */
void *sw_reserve(size_t bytes)
{
	void *p = VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
	return p ? memset(p, 1, bytes) : NULL;
}

/* Copies until a fault, and returns the number of bytes. A suspended thread can be terminated, and its
 * stack goes with it. The bounds of a thread that is switching fibers may be those of two stacks. */
static __attribute__((noinline, noclone)) size_t copy(void *to, const void *from, size_t n)
{
	size_t left = n;
	__asm__ volatile("sw_copy:\n\trep movsb\nsw_copied:" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
	return n - left;
}

extern const uint8_t sw_copy[], sw_copied[];

/* Only faults of the instruction above are ours. */
static LONG CALLBACK fault(EXCEPTION_POINTERS *e)
{
	if (e->ContextRecord->Rip != (uint64_t)(uintptr_t)sw_copy)
		return EXCEPTION_CONTINUE_SEARCH;
	e->ContextRecord->Rip = (uint64_t)(uintptr_t)sw_copied;
	return EXCEPTION_CONTINUE_EXECUTION;
}

/* The fault handler is installed: an unreadable byte ends the copy. */
uint64_t sw_copy_own(void *to, uint64_t from, uint64_t len, int sure)
{
	(void)sure;
	return copy(to, (const void *)(uintptr_t)from, len);
}

int sw_capture_init(size_t stack_bytes)
{
	struct sw_slot *s = &slots[0];
	if (!AddVectoredExceptionHandler(1, fault))
		return ERROR_NOT_ENOUGH_MEMORY;
	stack_room = stack_bytes;
	s->stack = sw_reserve(stack_bytes);
	s->frames = sw_reserve(SW_FRAME_ROOM * sizeof(struct sw_frame));
	s->context = (uint8_t *)&context;
	s->seed = (uint8_t *)&seed;
	return s->stack && s->frames ? 0 : ERROR_NOT_ENOUGH_MEMORY;
}

uint64_t sw_now_ns(void)
{
	LARGE_INTEGER now;
	if (!frequency.QuadPart)
		QueryPerformanceFrequency(&frequency); /* idempotent, so a race is harmless */
	QueryPerformanceCounter(&now);
	uint64_t f = (uint64_t)frequency.QuadPart, t = (uint64_t)now.QuadPart;
	return t / f * 1000000000u + t % f * 1000000000u / f;
}

/* Increments the suspend count of a claimed thread. 1: done; 0: the thread has ended; -1: access denied.
 * The thread may run on until sw_context. */
int sw_suspend(int slot, uint64_t thread_id)
{
	struct sw_slot *s = sw_slot_at(slot);
	struct sw_thread *t = sw_thread_of(thread_id);
	if (!t)
		return 0;
	if (!t->handle)
		return -1;
	s->thread_id = thread_id;
	s->tid = t->tid;
	s->stack_low = t->stack_low;
	s->stack_high = t->stack_high;
	s->handle = t->handle;
	s->teb = t->teb;
	sw_watch_let_go(); /* from an earlier window */
	sw_hook_before_suspend(thread_id);
	sw_held_set((uint32_t)s->tid);
	DWORD already = SuspendThread((HANDLE)(uintptr_t)s->handle);
	if (already != (DWORD)-1) {
		s->already = already; /* ResumeThread does not change it */
		return 1;
	}
	sw_held_set(0);
	DWORD code; /* may be a thread that the CLR has not reported yet */
	return GetExitCodeThread((HANDLE)(uintptr_t)s->handle, &code) && code != STILL_ACTIVE ? 0 : -1;
}

/* Copies [rsp, base). Below the limit is the guard page: reading it from another thread would remove that
 * thread's guard. */
static void copy_stack(struct sw_slot *s)
{
	struct {
		uint64_t exceptions, base, limit; /* NT_TIB */
	} tib;
	uint64_t from = context.Rsp, limit = s->stack_low;
	s->stack_len = 0;
	s->foreign = s->truncated = 0;
	if (s->teb && copy(&tib, (const void *)(uintptr_t)s->teb, sizeof tib) == sizeof tib) {
		limit = tib.limit;
		/* A fiber has a stack of its own, and these fields contain it. */
		if (tib.base != s->stack_high) {
			s->stack_low = limit;
			s->stack_high = tib.base;
		}
	}
	s->stack_addr = from;
	if (from < limit && from >= s->stack_low)
		from = s->stack_addr = limit; /* the frame is still growing its stack */
	if (from < limit || from >= s->stack_high) {
		s->foreign = 1;
		return;
	}
	uint64_t len = s->stack_high - from;
	if (len > stack_room) {
		len = stack_room;
		s->truncated = 1;
	}
	s->stack_len = copy(s->stack, (const void *)(uintptr_t)from, len);
	s->truncated |= s->stack_len < len;
}

/* Completes the suspension: the thread is certainly stopped only when this returns. 0: it no longer has a
 * context. */
int sw_context(int slot)
{
	struct sw_slot *s = sw_slot_at(slot);
	context.ContextFlags = CONTEXT_FULL | CONTEXT_FLOATING_POINT;
	s->frame_count = 0;
	s->full = 0;
	if (!GetThreadContext((HANDLE)(uintptr_t)s->handle, &context))
		return 0;
	s->loads = sw_loader_changes();
	sw_hook_window(s);
	copy_stack(s);
	memcpy(&seed, &context, sizeof seed);
	return 1;
}

void sw_resume(int slot)
{
	if (!sw_watch_let_go())
		ResumeThread((HANDLE)(uintptr_t)sw_slot_at(slot)->handle);
	sw_held_set(0);
}

int sw_signal_taken(void) { return 0; }
