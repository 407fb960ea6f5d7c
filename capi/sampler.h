/* Interface between the C and the Go of the sampler. */
#ifndef SEEDWALK_SAMPLER_H
#define SEEDWALK_SAMPLER_H

#include "types.h"

#include "../profiler/host/platform.h"

enum { SW_STACKS = 64 }; /* per call: at least SW_SLOTS */

/* The results of the last call; written by Go, in C memory. */
extern seedwalk_stack sw_stacks[SW_STACKS];
extern int sw_stack_count;
extern char sw_stack_names[SW_STACKS][64];

/* errors.c */
int sw_give(const char *text, char *out, int32_t room); /* copies a text, truncated to room, and returns its length */
void sw_problem(const char *what);
int sw_told(int error); /* makes seedwalk_sampler_problem describe the error, and returns the error */
/* Structures of the caller, which begin with their size (seedwalk.h). sw_sized copies one into ours, of known
 * bytes. sw_answerable checks one for results, and sw_return fills it; both accept NULL. */
int sw_sized(void *to, uint32_t known, uint32_t least, const void *from);
int sw_answerable(const void *to, uint32_t least);
void sw_return(void *to, uint32_t known, const void *from);

/* check_amd64.c: returns SEEDWALK_OK, or an error if the vendor does not forward a callback. *all is set once
 * the runtime has started: a later check would find nothing more. */
extern uint32_t sw_forwarded_created, sw_forwarded_assigned, sw_forwarded_loaded;
int sw_check_forwarded(int *all);

enum { SW_COPIES = 64 };

/* copies_amd64.c: copies that application threads have made of their own stacks. */
struct sw_copied {
	uint32_t state; /* changed atomically by both sides */
	uint32_t truncated;
	uint64_t tag, tid, thread_id;
	uint64_t regs[17]; /* as in struct sw_slot */
	uint64_t stack_addr, stack_len, stack_low, stack_high;
	uint8_t *stack;
};
int sw_sampler_is_open(void);
int sw_copies_init(size_t stack_bytes);
struct sw_copied *sw_copy_take(int i); /* the i-th copy if it is complete, else NULL */
void sw_copy_done(struct sw_copied *c);
uint64_t sw_copies_dropped(void);

#endif
