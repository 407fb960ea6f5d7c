/* Functions that differ between the two platforms: threads, time, error texts. Each platform has a file
 * sampler_OS.c for them. */
#ifndef SEEDWALK_PLATFORM_H
#define SEEDWALK_PLATFORM_H

#include <stdint.h>

#include "shim.h"

#ifdef _WIN32
#define SW_EXPORT __declspec(dllexport)
#else
#define SW_EXPORT __attribute__((visibility("default")))
#endif

/* The oldest usable ICorProfilerInfo, what an older CLR lacks, and the first CLR that has it. */
extern const int sw_least_info;
extern const char sw_least_why[];
extern const char sw_least_clr[];

/* Starts the sampler thread, which calls body and ends. 0, or an error. */
int sw_start_sampler(void (*body)(void));
/* Whether that thread was terminated, so that its locks stay held. */
int sw_sampler_gone(void);
/* Prepares the window, before the first one. 0, or an error. */
int sw_window_init(size_t stack_bytes);
const char *sw_error_text(int error);
extern const int sw_no_memory; /* the error for a lack of memory */
void sw_sleep_us(unsigned us);
int sw_wait_flag(int *flag, int value, unsigned ms);
/* If *word is value, waits a moment or until sw_wake. */
void sw_wait_while(uint64_t *word, uint64_t value);
void sw_wake(uint64_t *word);
/* Returns an environment variable in a buffer of its own, or NULL. */
const char *sw_environment(const char *name);

#endif
