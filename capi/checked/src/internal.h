/* What the two halves of the checking proxy share: proxy.c, which stands in the
 * vtables, and rules.c, which knows what may be done where. */
#ifndef SEEDWALK_CHECKED_INTERNAL_H
#define SEEDWALK_CHECKED_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "checked.h"

typedef uint32_t hresult;
typedef uintptr_t word;
#define METHOD(self, slot, T) ((T)(*(void ***)(self))[slot])

enum { FIRST_SLOT = 3, REFUSED = 0x80131363u };
/* More arguments than any method has, without self; the longest has 12. */
enum { ARGS = 12 };

enum gate { ASYNC, SYNC, SYNC_GC, INIT_ONLY, OWN, STUB };
/* Of a method, a callback or a bit of the event mask. */
enum {
	GC = 1, NO_ATTACH = 2, NO_NOTIFY = 4, NO_THREAD = 8, NO_OWNER = 0x10, OWNER_HANGS = 0x20, KILLS = 0x40, BECOMES = 0x80,
	CRASHES_IN_INIT = 0x100, OTHER_HANGS = 0x200, NOTRIGGER_REFUSES = 0x400,
	TRIGGERS = 1, MAY_WAIT = 2, OBJECTS = 4,
	BIT_FIXED = 1,
};
struct info_row {
	const char *name;
	enum gate gate;
	int flags;
};
struct callback_row {
	const char *name;
	int flags;
};
struct mask_row {
	const char *name;
	int high;
	uint32_t value;
	int flags;
};

/* What the proxy knows of the calling thread. */
enum { DEPTH = 32 };
struct thread {
	int depth;             /* of callbacks, which nest */
	uint8_t slots[DEPTH];  /* those deeper are counted only */
	int locks, stopped;    /* declared */
	int snapshot;          /* inside DoStackSnapshot: the callback is its caller's */
	int primed;            /* it has called DoStackSnapshot */
	int let_in;            /* a native thread that became a managed one */
};
struct thread *seedwalk_checked_thread(void);

/* One profiler, one process. */
struct checked {
	void *info; /* the CLR's; NULL before Initialize */
	seedwalk_report report;
	void *client;
	int initialized, attached, notification, detaching;
	int profiler;                  /* callbacks come through the proxy */
	uint32_t mask[2], has_mask;
	struct thread *owner;          /* holds SuspendRuntime */
};
extern struct checked seedwalk_checked_state;

/* Looks at a call before it is made; 0: it must not be. */
int seedwalk_checked_before(unsigned slot, const word *a);
void seedwalk_checked_after(unsigned slot, const word *a, hresult hr);
/* A thread's end, and a new one that may have its id. */
void seedwalk_checked_destroyed(word id, int yes);
void seedwalk_checked_say(const char *method, const char *rule, const char *text, int fatal);

#endif
