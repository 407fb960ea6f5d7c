/* What a world and the explorer share. A world includes the product's sources and defines the
 * world_ functions. The explorer runs its threads as coroutines of one process. */
#ifndef SEEDWALK_NATIVE_H
#define SEEDWALK_NATIVE_H

#include <stddef.h>
#include <stdint.h>

/* world_reset prepares the memory for an execution. world_thread runs thread i. world_end
 * checks what must hold after all threads have ended. */
int world_threads(void);
void world_reset(void);
void world_thread(int i);
void world_end(void);

/* sim_watch makes accesses to memory steps. The first reset watches, later ones may repeat it. */
void sim_watch(const void *p, size_t n);
/* sim_alias says that n bytes at p are the same memory as those by bytes before. */
void sim_alias(const void *p, size_t n, size_t by);
/* sim_range is a plain access to n bytes that the compiler does not show: a copy. */
void sim_range(const void *p, uint32_t n, int kind);
/* sim_syscall is a system call that reads or changes the kernel's word at p. It orders no memory. */
void sim_syscall(const void *p, int kind, const char *what);
/* sim_pages is a system call that puts empty pages in the place of n bytes at p: all threads see
 * them at once. */
void sim_pages(void *p, uint32_t n);
/* sim_wait blocks the thread until ready(arg), which depends on the word at p. */
void sim_wait(const void *p, uint32_t n, const char *what, int (*ready)(void *), void *arg);
/* sim_check fails the execution. */
void sim_check(int ok, const char *what);
/* sim_outcome adds to the text that tells this execution's result from others. */
void sim_outcome(const char *text);
int sim_me(void);
/* Loads and stores of a party whose atomics are sequentially consistent: the Go side. */
uint64_t sim_load64(const uint64_t *p);
uint32_t sim_load32(const uint32_t *p);
void sim_store64(uint64_t *p, uint64_t v);
void sim_store32(uint32_t *p, uint32_t v);

enum { SIM_READ = 1, SIM_WRITE = 2, SIM_BOTH = 3 };
#define UNSEEN __attribute__((no_sanitize_thread)) /* its accesses are no steps */

/* The simulated kernel, kernel.c. */
void sim_kernel_reset(void);
void sim_advance(uint64_t time); /* the clock is later from now on, for everybody */
long sim_sys6(long n, long a, long b, long c, long d, long e, long f);
void sim_copy(void *to, uint64_t from, uint64_t n);
enum { SIM_TIMERS = 16, SIM_SIGNALS = 65 };
struct sim_action { uint64_t handler, flags, restorer, mask; };
extern struct sim_action sim_actions[SIM_SIGNALS];
extern int sim_timers[SIM_TIMERS], sim_made;
extern int sim_unset; /* timer_settime fails */

#endif
