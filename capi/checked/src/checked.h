/* A checking proxy for authors of profilers, between a profiler and the CLR. The proxy checks every call of
 * the info interface. It reports which rule of the profiling API the call breaks, before the CLR hangs,
 * crashes, or moves an object that is in use.
 *
 * In CreateInstance of your class factory:
 *
 *     *object = seedwalk_checked_profiler(object_of_yours, report, client);
 *
 * Initialize then gets a checked info pointer, and the proxy sees which callback a thread is in. To check
 * the info interface alone, use seedwalk_checked_info, and call seedwalk_checked_enter and _leave around
 * each callback.
 *
 * Declare what no proxy can see: your locks, and the threads that you have suspended.
 *
 * A call that would hang or crash the process is reported and not executed: it returns 80131363. All other
 * calls are executed. docs/contracts.md lists the rules.
 *
 * The proxy tracks each thread and the runtime: callbacks, running methods, the suspension and its owner,
 * ids that have ended. A thread of the proxy's detects waits that do not end, such as a ThreadDestroyed
 * that waits for a thread in SuspendRuntime.
 *
 * Works on Linux (x86-64, ARM64) and Windows (x64; with mingw link -static, for its thread-local storage).
 * One profiler per process. Each call costs a vtable and some comparisons more: use it for debugging, not
 * in a product. */
#ifndef SEEDWALK_CHECKED_H
#define SEEDWALK_CHECKED_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct seedwalk_violation {
	uint32_t size;      /* of this struct */
	uint32_t fatal;     /* the call was not executed */
	const char *method; /* of the info interface, or the declaration: "lock", "suspend" */
	const char *place;  /* the callback, or the kind of thread */
	const char *rule;   /* its name: see docs/contracts.md and `seedwalk rules` */
	const char *text;   /* what happens without the proxy */
	const char *remedy; /* what to do instead */
} seedwalk_violation;

/* Called on the thread that broke the rule, wherever it is, or on the proxy's own thread for waits that do
 * not end. It may not wait and may not call the profiling API. */
typedef void (*seedwalk_report)(const seedwalk_violation *v, void *client);

/* Both take over the reference of their argument, and return NULL without memory, or for a second
 * profiler. */
void *seedwalk_checked_profiler(void *callback, seedwalk_report report, void *client);
void *seedwalk_checked_info(void *info, seedwalk_report report, void *client);

/* The thread enters or leaves a callback, given by its slot. Not needed with seedwalk_checked_profiler. */
void seedwalk_checked_enter(unsigned slot);
void seedwalk_checked_leave(void);

/* The thread acquires or releases a lock that other threads use too. */
void seedwalk_checked_lock(void);
void seedwalk_checked_unlock(void);

/* The thread has suspended another one (SuspendThread), or has resumed it. */
void seedwalk_checked_suspended(void);
void seedwalk_checked_resumed(void);

#ifdef __cplusplus
}
#endif
#endif
