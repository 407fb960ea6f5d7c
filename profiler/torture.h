/* Where the test build lets the sampler make mistakes (torture_windows.c, build tag
 * torture). In the product's build nothing of it is left. */
#ifndef SEEDWALK_TORTURE_H
#define SEEDWALK_TORTURE_H

#include "shim.h"

#ifdef SW_TORTURE
void sw_torture_init(void);
/* Between the claim of a thread and its suspension. */
void sw_torture_before_suspend(uint64_t thread_id);
/* In the window: the thread of the slot stands still. */
void sw_torture_window(const struct sw_slot *s);
/* Around what Go does wrong in the window; nonzero: that is wanted. */
int sw_torture_go_begin(void);
void sw_torture_go_end(void);
/* In ThreadDestroyed. Nonzero: the profiler is one that does not care about it. */
int sw_torture_unguarded(uint64_t thread_id);
#else
static inline void sw_torture_init(void) {}
static inline void sw_torture_before_suspend(uint64_t thread_id) { (void)thread_id; }
static inline void sw_torture_window(const struct sw_slot *s) { (void)s; }
static inline int sw_torture_unguarded(uint64_t thread_id) { return (void)thread_id, 0; }
#endif

#endif
