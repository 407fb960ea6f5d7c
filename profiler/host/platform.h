/* What the two platforms do differently below the same C face: threads, time,
 * words for errors. Each has a file sampler_OS.c for it. */
#ifndef SEEDWALK_PLATFORM_H
#define SEEDWALK_PLATFORM_H

#include <stdint.h>

#include "shim.h"

#ifdef _WIN32
#define SW_EXPORT __declspec(dllexport)
#else
#define SW_EXPORT __attribute__((visibility("default")))
#endif

/* The oldest ICorProfilerInfo sampling can do with, what a CLR without it lacks, and
 * the first that has it. */
extern const int sw_least_info;
extern const char sw_least_why[];
extern const char sw_least_clr[];

/* Starts the sampler thread, which calls body and ends. 0, or an error. */
int sw_start_sampler(void (*body)(void));
/* Whether that thread was ended by force, so that what it holds stays so. */
int sw_sampler_gone(void);
/* Makes ready what the window needs, before any window. 0, or an error. */
int sw_window_init(size_t stack_bytes);
const char *sw_error_text(int error);
extern const int sw_no_memory; /* the error of that name */
void sw_sleep_us(unsigned us);
int sw_wait_flag(int *flag, int value, unsigned ms);
/* Waits a moment, or until sw_wake, if *word is value. */
void sw_wait_while(uint64_t *word, uint64_t value);
void sw_wake(uint64_t *word);
/* The value of an environment variable in a buffer of its own, or NULL. */
const char *sw_environment(const char *name);

#endif
