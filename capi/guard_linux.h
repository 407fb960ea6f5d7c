/* Signal actions around the start of the Go runtime: guard_linux.c. */
#ifndef SEEDWALK_GUARD_LINUX_H
#define SEEDWALK_GUARD_LINUX_H
#include <stdint.h>

int sw_guard_signals(void); /* one more than the last */
uint64_t sw_guard_handler(int s);
void sw_guard_restore(int s);
void sw_guard_flags(int s);

#endif
