/* Resumes a thread that is suspended too long. */
#ifndef SEEDWALK_WATCHDOG_H
#define SEEDWALK_WATCHDOG_H

#include <stdint.h>

/* Starts the watchdog. 0, or an error. */
int sw_watch_init(void);
/* Called around a call of the CLR about a claimed thread. sw_watch_end returns nonzero if the thread ran
 * on meanwhile. */
void sw_watch_begin(uint64_t thread_id);
int sw_watch_end(void);
/* Whether the last call ended so, once: then the sampler has nothing to resume. */
int sw_watch_let_go(void);

#endif
