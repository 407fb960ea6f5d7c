/* Shared by the two halves of the checking proxy: proxy.c, which implements the vtables, and rules.c,
 * which checks the rules. */
#ifndef SEEDWALK_CHECKED_INTERNAL_H
#define SEEDWALK_CHECKED_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "checked.h"

typedef uint32_t hresult;
typedef uintptr_t word;
#define METHOD(self, slot, T) ((T)(*(void ***)(self))[slot])

enum { FIRST_SLOT = 3, REFUSED = 0x80131363u };
/* The number of arguments that are passed on, without self: as many as the longest method has. */
enum { ARGS = 12 };

enum gate { ASYNC, SYNC, SYNC_GC, INIT_ONLY, OWN, STUB };
/* Flags of a method, then of a callback, then of a bit of the event mask. */
enum {
	GC = 1, NO_ATTACH = 2, NO_NOTIFY = 4, NO_THREAD = 8, NO_OWNER = 0x10, OWNER_HANGS = 0x20, KILLS = 0x40, BECOMES = 0x80,
	CRASHES_IN_INIT = 0x100, OTHER_HANGS = 0x200, NOTRIGGER_REFUSES = 0x400,
	TRIGGERS = 1, MAY_WAIT = 2, OBJECTS = 4,
	BIT_FIXED = 1,
};
struct info_row {
	const char *name;
	enum gate gate;
	int version;    /* of the interface */
	uint32_t needs; /* one of these bits of the event mask, or 0 */
	int flags;
};
struct check_row {
	const char *name, *text, *remedy;
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

/* The state of a thread. The watch reads records of other threads. */
enum { DEPTH = 32, THREADS = 1024 };
struct thread {
	uint32_t serial;      /* unique in the process; 0: the record is free */
	int depth;            /* number of nested callbacks */
	uint8_t slots[DEPTH]; /* deeper ones are only counted */
	int locks, stopped;   /* locks held and threads suspended, as the profiler declared */
	int snapshot;         /* inside DoStackSnapshot: a StackSnapshotCallback runs in its caller's context */
	int primed;           /* it has called DoStackSnapshot */
	int let_in;           /* a native thread that became a managed thread */
	int reported;         /* the current call broke a rule */
	unsigned calling;     /* the method in progress in the innermost callback */
	word frame;           /* COR_PRF_FRAME_INFO of the innermost StackSnapshotCallback */
	word target;          /* the thread that DoStackSnapshot walks */
	uint32_t steps, seen; /* calls and callbacks so far, and their number at the watch's last check */
	int unchanged;        /* checks of the watch since the last step */
	uint32_t reported_at; /* the step at which a wait was reported */
};
struct thread *seedwalk_checked_thread(void);
extern struct thread seedwalk_checked_threads[THREADS];

/* The watch checks every 20 ms. These are the numbers of checks without a step after which a wait counts
 * as endless, and a suspension as too long. */
enum { LOOK_MS = 20 };
extern int seedwalk_checked_patience, seedwalk_checked_longest;
void seedwalk_checked_watch(void);

/* Kinds of ids, and what ends them. */
enum kind { NO_ID, THREAD_ID, MODULE_ID, CLASS_ID, FUNCTION_ID, ASSEMBLY_ID, DOMAIN_ID, HANDLE_ID, SESSION_ID, KINDS };
int seedwalk_checked_is_dead(enum kind kind, word id);
void seedwalk_checked_end(enum kind kind, word id, int ended);

/* One profiler in one process. */
struct checked {
	void *info; /* the CLR's; NULL before Initialize */
	seedwalk_report report;
	void *client;
	int initialized, attached, notification, detaching;
	int profiler;                  /* callbacks come through the proxy */
	uint32_t mask[2], has_mask;
	uint32_t owner; /* the serial of the thread that holds SuspendRuntime */
	int down;       /* Shutdown has returned */
	int version;    /* of the requested info interface */
	int references; /* to the info interface, taken and not released */
};
extern struct checked seedwalk_checked_state;

/* Checks a call before it is executed; 0: it must not be. */
int seedwalk_checked_before(unsigned slot, const word *a);
void seedwalk_checked_after(unsigned slot, const word *a, hresult hr);
/* Called before a callback and after it has returned, to track ids. */
void seedwalk_checked_callback(unsigned slot, word id, int returned);
/* A thread ends. */
void seedwalk_checked_ended(struct thread *t);
/* check is one of enum check of table.h. */
void seedwalk_checked_say(const char *method, int check, int fatal);
void seedwalk_checked_say_of(const char *method, const char *place, int check, int fatal);

#endif
