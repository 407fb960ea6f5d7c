/* What search.c and memory.c share. */
#ifndef SEEDWALK_EXPLORER_H
#define SEEDWALK_EXPLORER_H

#include "native.h"

enum { THREADS = 5, DEPTH = 6000 };

typedef uint16_t clocks[THREADS]; /* a vector clock */

/* A step that a thread is about to take. */
struct step {
	uint8_t kind, atomic, order; /* kind 0: the thread's first */
	uint32_t size;
	uintptr_t addr;
	void *pc;
	const char *what;
	int (*ready)(void *);
	void *arg;
};

extern int running;     /* the thread that runs, -1: none */
extern int threads;     /* of the world */
extern int weak;        /* stale reads and late stores are explored */
extern uint32_t execution; /* counts up */
int point(struct step s); /* others may run first; 0: the execution is over */
int choose(int n);        /* one of n, in the step that runs: all are explored */
void memory_reset(void);
void memory_flush(void); /* a plain store is in memory by now */
void print_races(void);
extern int racy;         /* distinct races */

#endif
