/* What stands in the place of the product's hooks.h: the mistakes are made. */
#ifndef SEEDWALK_HOOKS_H
#define SEEDWALK_HOOKS_H

#include "shim.h"

void sw_hook_init(void);
void sw_hook_before_suspend(uint64_t thread_id);
void sw_hook_window(const struct sw_slot *s);
int sw_hook_unguarded(uint64_t thread_id);

#endif
