/* Threads that go over to stacks of their own making, a higher one, a lower one and a
 * higher one again, and wait there.
 * Usage: switches THREADS. Says "ready" when all do. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct stacks {
	char *low, *high, *higher; /* their ends */
};

/* Calls f(arg) on another stack, as rustc's psm does: the unwind data lead back by the
 * frame pointer. */
int on_stack(void *end, int (*f)(struct stacks *), struct stacks *arg);
__asm__(".text\n"
	".globl on_stack\n"
	".type on_stack, @function\n"
	"on_stack:\n"
	".cfi_startproc\n"
	"	pushq %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset %rbp, -16\n"
	"	movq %rsp, %rbp\n"
	".cfi_def_cfa_register %rbp\n"
	"	movq %rdi, %rsp\n"
	"	movq %rdx, %rdi\n"
	"	call *%rsi\n"
	"	movq %rbp, %rsp\n"
	"	popq %rbp\n"
	".cfi_def_cfa %rsp, 8\n"
	".cfi_restore %rbp\n"
	"	ret\n"
	".cfi_endproc\n"
	".size on_stack, .-on_stack\n");

static int running;

__attribute__((noipa)) static int on_higher(struct stacks *s)
{
	(void)s;
	__atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

__attribute__((noipa)) static int on_low(struct stacks *s) { return on_stack(s->higher, on_higher, s) + 1; }
__attribute__((noipa)) static int on_high(struct stacks *s) { return on_stack(s->low, on_low, s) + 1; }
__attribute__((noipa)) static int on_own(struct stacks *s) { return on_stack(s->high, on_high, s) + 1; }

/* Each of the three between inaccessible pages. */
static void *run(void *p)
{
	enum { size = 1 << 16, apart = 1 << 20, room = 256 };
	(void)p;
	char *all = mmap(0, 4 * apart, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *end[3];
	if (all == MAP_FAILED)
		abort();
	for (int i = 0; i < 3; i++) {
		char *low = all + (i + 1) * apart;
		if (mprotect(low, size, PROT_READ | PROT_WRITE))
			abort();
		end[i] = low + size - room;
	}
	struct stacks s = {end[0], end[1], end[2]};
	on_own(&s);
	return 0;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t t;
	for (int i = 1; i <= n; i++)
		if (pthread_create(&t, 0, run, 0))
			return 1;
	while (__atomic_load_n(&running, __ATOMIC_SEQ_CST) < n)
		usleep(1000);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
