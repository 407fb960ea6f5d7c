/* Interface between the CLR's callbacks and the sampler, in C and Go. */
#ifndef SEEDWALK_CALLBACK_H
#define SEEDWALK_CALLBACK_H

#include "host/platform.h"

int sw_armed(void); /* 1: sampling may begin; -1: it never will; 0: not known yet */
void sw_sampler_ready(void);
void sw_sampler_done(void);

#ifdef _WIN32
/* events_windows.c */
sw_hresult sw_events_begin(void *self, void *unknown);
void sw_events_end(void);
void sw_delivered(void); /* EventPipeEventDelivered */
#endif

/* guard.c, guard_windows.c: undoes the changes that the start of the Go runtime makes to the process. */
void sw_go_started(void);

#endif
