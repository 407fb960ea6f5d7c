/* Where a test's build of the library makes a sampler's mistakes: its own hooks.h
 * stands in the place of this one (e2e/testprof/torture). Here nothing is done. */
#ifndef SEEDWALK_HOOKS_H
#define SEEDWALK_HOOKS_H

#include "shim.h"

static inline void sw_hook_init(void) {}
/* Between the claim of a thread and its suspension. */
static inline void sw_hook_before_suspend(uint64_t thread_id) { (void)thread_id; }
/* In the window: the thread of the slot stands still. */
static inline void sw_hook_window(const struct sw_slot *s) { (void)s; }
/* The CLR is about to be asked about a thread. */
static inline void sw_hook_asking(void) {}
/* Nonzero: threads in the system's loader are asked about all the same. */
static inline int sw_hook_careless(void) { return 0; }
/* Nonzero: there is no watchdog. */
static inline int sw_hook_unwatched(void) { return 0; }
/* In ThreadDestroyed. Nonzero: it is not told to wait for the sampler. */
static inline int sw_hook_unguarded(uint64_t thread_id) { return (void)thread_id, 0; }

#endif
