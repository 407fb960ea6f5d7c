/* Publishes to the tool which thread the sampler has suspended.
 *
 * ExitProcess ends all threads but its own. If that thread was being suspended, the request outlives the
 * sampler that made it, and the process neither runs nor ends (golang/go src/runtime/os_windows.go, exit).
 * Nothing inside the process can fix that. The tool sees the end of the sampler's thread and undoes the
 * suspension. */
#ifndef SEEDWALK_HELD_WINDOWS_H
#define SEEDWALK_HELD_WINDOWS_H

#include <stdint.h>

/* The contents of the section; cmd/record/held_windows.go mirrors it. */
struct sw_held {
	uint32_t sampler; /* the sampler's thread, written before the section can be found */
	uint32_t thread;  /* 0: no thread is suspended or about to be */
};

void sw_held_init(uint32_t sampler);
/* Called before a suspension is requested, and after it has been undone. */
void sw_held_set(uint32_t thread);

#endif
