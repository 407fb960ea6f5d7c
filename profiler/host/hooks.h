/* Places where a test build of the library makes a sampler's mistakes: it replaces this file with its own
 * (e2e/testprof/torture). Here the hooks do nothing. */
#ifndef SEEDWALK_HOOKS_H
#define SEEDWALK_HOOKS_H

#include "shim.h"

static inline void sw_hook_init(void) {}
/* Between the claim of a thread and its suspension. */
static inline void sw_hook_before_suspend(uint64_t thread_id) { (void)thread_id; }
/* In the window: the thread of the slot is suspended. */
static inline void sw_hook_window(const struct sw_slot *s) { (void)s; }
/* Before a call of the CLR about a thread. */
static inline void sw_hook_asking(void) {}
/* Nonzero: call the CLR even about threads in the system's loader. */
static inline int sw_hook_careless(void) { return 0; }
/* Nonzero: there is no watchdog. */
static inline int sw_hook_unwatched(void) { return 0; }
/* In ThreadDestroyed. Nonzero: it does not wait for the sampler. */
static inline int sw_hook_unguarded(uint64_t thread_id) { return (void)thread_id, 0; }

#endif
