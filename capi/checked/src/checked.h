/* A checking proxy for people who write or debug a profiler: it stands between a
 * profiler and the CLR, looks at every call of the info interface and says which
 * rule of the profiling API it breaks, before the CLR hangs, dies or moves an
 * object from under it.
 *
 * In CreateInstance of your class factory:
 *
 *     *object = seedwalk_checked_profiler(object_of_yours, report, client);
 *
 * The info pointer that Initialize gets is then a checked one, and the callbacks
 * tell the proxy where a thread stands. Who wants the info interface alone takes
 * seedwalk_checked_info, and says with seedwalk_checked_enter and _leave when a
 * thread is in a callback.
 *
 * What no proxy can see you declare: locks of yours, and threads that you have
 * suspended. The names stay yours.
 *
 * A call that would hang or end the process is reported and not made: it answers
 * 80131363. All others are made. The rules are those of docs/contracts.md.
 *
 * The proxy follows each thread and the runtime: callbacks, methods under way, the
 * suspension and its owner, ids that have ended. A thread of its own looks for waits
 * that do not end, such as a ThreadDestroyed that waits for a thread in SuspendRuntime.
 *
 * Works on Linux (x86-64, ARM64) and Windows (x64; with mingw link -static, for its
 * thread-local storage). One profiler a process. Costs a
 * vtable and some compares a call: for debugging, not for a product. */
#ifndef SEEDWALK_CHECKED_H
#define SEEDWALK_CHECKED_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct seedwalk_violation {
	uint32_t size;      /* of this struct */
	uint32_t fatal;     /* the call was not made */
	const char *method; /* of the info interface, or what was declared: "lock", "suspend" */
	const char *place;  /* the callback, or the kind of thread */
	const char *rule;   /* its name: see docs/contracts.md and `seedwalk rules` */
	const char *text;   /* what happens without the proxy */
	const char *remedy; /* what to do instead */
} seedwalk_violation;

/* Called on the thread that broke the rule, wherever that thread is, or on the proxy's
 * own thread for waits that do not end. It may not wait and may not call the profiling
 * API. */
typedef void (*seedwalk_report)(const seedwalk_violation *v, void *client);

/* Both take over the reference of what they are given, and answer NULL without
 * memory, or for a second profiler. */
void *seedwalk_checked_profiler(void *callback, seedwalk_report report, void *client);
void *seedwalk_checked_info(void *info, seedwalk_report report, void *client);

/* The thread enters or leaves a callback, by its slot. With
 * seedwalk_checked_profiler nobody needs them. */
void seedwalk_checked_enter(unsigned slot);
void seedwalk_checked_leave(void);

/* The thread takes or gives back a lock that other threads take too. */
void seedwalk_checked_lock(void);
void seedwalk_checked_unlock(void);

/* The thread has suspended another one (SuspendThread), or has resumed it. */
void seedwalk_checked_suspended(void);
void seedwalk_checked_resumed(void);

#ifdef __cplusplus
}
#endif
#endif
