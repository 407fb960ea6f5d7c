/* What RtlVirtualUnwind says of the walks of one suspension: oracle_windows.c, a
 * test's. The structures are what the file of answers holds, word for word. */
#ifndef SEEDWALK_ORACLE_H
#define SEEDWALK_ORACLE_H

#include <stdint.h>

enum { SW_ORACLE_WALKS = 64, SW_ORACLE_FRAMES = 250, SW_ORACLE_AGAIN = 8, SW_ORACLE_MOVES = 16 };

/* Why a walk ended. */
enum {
	SW_ORACLE_NO_IMAGE,    /* the last frame's ip is in no native image */
	SW_ORACLE_END,         /* it is 0 */
	SW_ORACLE_BOUNDS,      /* the step out of it may read outside the stack */
	SW_ORACLE_NO_PROGRESS, /* the step out of it leads down */
	SW_ORACLE_FULL,
};

struct sw_oracle_frame {
	uint64_t reg[10]; /* rip rsp rbx rbp rsi rdi r12 r13 r14 r15 */
};

struct sw_oracle_walk {
	uint64_t thread;      /* ThreadID */
	uint64_t block;       /* 0: from the thread's registers; i+1: from frame i of the CLR's */
	uint64_t stack;       /* FNV-1a of the copied stack, by which a suspension is known again */
	/* Nanoseconds of the walk, of block 0: */
	uint64_t own;         /* ours, the one whose seed the CLR was given */
	uint64_t first;       /* RtlVirtualUnwind's first, with our checks before each step */
	uint64_t own_again;   /* ours, the mean of SW_ORACLE_AGAIN more */
	uint64_t again;       /* RtlVirtualUnwind's, the same, entries found by our own search */
	uint64_t lookup;      /* RtlLookupFunctionEntry for its addresses */
	uint64_t stop;
	uint64_t count;       /* of frames, the first is where the walk began */
	uint64_t xmm[20];     /* of the last frame; of the first block only */
	/* Words of the stack that were others when it was copied: a collector moves
	 * objects, and writes their new addresses into stacks that stand still. */
	uint64_t moves;
	struct { uint64_t was, is; } moved[SW_ORACLE_MOVES];
	struct sw_oracle_frame frames[SW_ORACLE_FRAMES];
};

void sw_oracle_images(const uint64_t *bases, int n);
void sw_oracle_reset(void);
struct sw_oracle_walk *sw_oracle_top(void);
void sw_oracle_blocks(void);
void sw_oracle_lookup(void);
struct sw_oracle_walk *sw_oracle_walks(int *n);

#endif
