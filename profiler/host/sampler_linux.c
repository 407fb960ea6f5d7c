/* The sampler thread, time and errors on Linux. */
#define _GNU_SOURCE
#include "platform.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const int sw_least_info = 10; /* the first with SuspendRuntime */
const char sw_least_why[] = "it cannot suspend itself for a profiler (ICorProfilerInfo10)";
const char sw_least_clr[] = ".NET Core 3.0";

static void *life(void *body)
{
	((void (*)(void))body)();
	return NULL;
}

/* The thread blocks every signal but SIGURG, so that no handler of the target runs on it. */
int sw_start_sampler(void (*body)(void))
{
	pthread_t thread;
	sigset_t all, old;
	sigfillset(&all);
	sigdelset(&all, SIGURG);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int err = pthread_create(&thread, NULL, life, (void *)body);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err == 0)
		pthread_detach(thread);
	return err;
}

int sw_sampler_gone(void) { return 0; } /* all threads of a process end at once */

int sw_window_init(size_t stack_bytes) { return sw_capture_init(stack_bytes); }
const int sw_no_memory = ENOMEM;
const char *sw_error_text(int error)
{
	if (error == EBUSY) /* sw_capture_init */
		return "SIGRTMIN+5 has a handler already: the program's, another profiler's, or that of a second copy of this library in the process";
	return strerror(error);
}
const char *sw_environment(const char *name) { return getenv(name); }

uint64_t sw_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sw_sleep_us(unsigned us)
{
	struct timespec pause = {us / 1000000, us % 1000000 * 1000L};
	nanosleep(&pause, NULL);
}

/* No single thread is claimed here, so there is none to wake. */
void sw_wait_while(uint64_t *word, uint64_t value)
{
	(void)word, (void)value;
	sw_sleep_us(100);
}

void sw_wake(uint64_t *word) { (void)word; }
