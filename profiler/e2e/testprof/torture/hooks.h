/* What stands in the place of the product's hooks.h: the mistakes are made. */
#ifndef SEEDWALK_HOOKS_H
#define SEEDWALK_HOOKS_H

#include "shim.h"

void sw_hook_init(void);
void sw_hook_before_suspend(uint64_t thread_id);
void sw_hook_window(const struct sw_slot *s);
void sw_hook_asking(void);
int sw_hook_careless(void);
int sw_hook_unwatched(void);
int sw_hook_unguarded(uint64_t thread_id);

#endif
