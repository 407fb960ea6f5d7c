/* The thread that the sampler holds suspended, told to the tool.
 *
 * ExitProcess ends all threads but its own. If that one was being suspended, the
 * request outlives the sampler that made it, and the process neither runs nor ends
 * (golang/go src/runtime/os_windows.go, exit). Nothing inside can help; the tool,
 * which sees the sampler's thread end, takes the suspension back. */
#ifndef SEEDWALK_HELD_WINDOWS_H
#define SEEDWALK_HELD_WINDOWS_H

#include <stdint.h>

/* What the section holds; cmd/record/held_windows.go has it too. */
struct sw_held {
	uint32_t sampler; /* the sampler's thread, written once before the section is found */
	uint32_t thread;  /* 0: none is held, nor about to be */
};

void sw_held_init(uint32_t sampler);
/* Around a suspension: before it is asked for, and when it has been taken back. */
void sw_held_set(uint32_t thread);

#endif
