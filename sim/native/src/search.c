/* The search: every execution of a world up to the order of independent steps. Source sets and
 * sleep sets (Abdulla, Aronis, Jonsson, Sagonas: Optimal Dynamic Partial Order Reduction, 2014),
 * no bound on preemptions. A step may have choices besides: which store a load reads. */
#include "explorer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { STACK = 1 << 18, OUTCOMES = 4096, TEXT = 200 };

struct node {
	struct step next[THREADS];
	clocks clock; /* of the step that was chosen, in happens-before of conflicts */
	uint16_t index;
	uint8_t chosen, enabled, backtrack, done, sleep;
	int choice, choices;
};

static struct node path[DEPTH];
static int length, depth, fresh; /* nodes of the path, the current one, the first new one */
static struct { void *sp; char *stack; int ended; struct step next; } thread[THREADS];
static void *main_sp;
int running = -1, threads, weak;
uint32_t execution;

static long executions, cut, events, longest, failures;
static int failed;
static char why[TEXT], first_why[TEXT], outcome[TEXT], outcomes[OUTCOMES][TEXT];
static int distinct;

/* sim_switch pushes the registers that a call preserves, and pops those of the other stack. That is KEPT
 * words; the last is the address where it continues. On x86-64, a new stack has one more word, the return
 * address of its first function (CALLED). */
void sim_switch(void **save, void *to);
#ifdef __aarch64__
enum { KEPT = 20, CALLED = 0 };
#define EACH(op) op " d14,d15,[sp]\n" op " d12,d13,[sp,#16]\n" op " d10,d11,[sp,#32]\n" op " d8,d9,[sp,#48]\n" op " x27,x28,[sp,#64]\n" \
	op " x25,x26,[sp,#80]\n" op " x23,x24,[sp,#96]\n" op " x21,x22,[sp,#112]\n" op " x19,x20,[sp,#128]\n" op " x29,x30,[sp,#144]\n"
__asm__(".globl sim_switch\nsim_switch:\n sub sp,sp,#160\n" EACH("stp") " mov x9,sp\n str x9,[x0]\n mov sp,x1\n" EACH("ldp") " add sp,sp,#160\n ret\n");
#else
enum { KEPT = 7, CALLED = 1 };
__asm__(".globl sim_switch\nsim_switch:\n push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
	" mov %rsp,(%rdi)\n mov %rsi,%rsp\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n");
#endif

static void fail(const char *what)
{
	if (!failed)
		snprintf(why, sizeof why, "%s", what);
	failed = 1;
}

void sim_check(int ok, const char *what)
{
	if (!ok)
		fail(what);
}

void sim_outcome(const char *text) { strncat(outcome, text, sizeof outcome - strlen(outcome) - 1); }
int sim_me(void) { return running; }

/* Threads. */

static void park(void)
{
	int me = running;
	running = -1;
	sim_switch(&thread[me].sp, main_sp);
}

int point(struct step s)
{
	if (running < 0)
		return 0;
	thread[running].next = s;
	park();
	return 1;
}

static void life(void)
{
	world_thread(running);
	memory_flush();
	thread[running].ended = 1;
	park();
	abort();
}

static void resume(int i)
{
	running = i;
	sim_switch(&main_sp, thread[i].sp);
	running = -1;
}

static void spawn(int i)
{
	if (!thread[i].stack)
		thread[i].stack = mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *sp = (uint64_t *)(thread[i].stack + STACK - 64) - CALLED - KEPT;
	memset(sp, 0, (KEPT + CALLED) * sizeof *sp);
	sp[KEPT - 1] = (uint64_t)life;
	thread[i].sp = sp;
	thread[i].ended = 0;
	memset(&thread[i].next, 0, sizeof thread[i].next);
	thread[i].next.what = "begin";
}

/* Partial order. */

static int conflict(const struct step *a, const struct step *b)
{
	return ((a->kind | b->kind) & SIM_WRITE) && a->addr < b->addr + b->size && b->addr < a->addr + a->size;
}

static struct step *taken(int i) { return &path[i].next[path[i].chosen]; }
static int before(int i, int j) { return path[j].clock[path[i].chosen] >= path[i].index; }

static void join(uint16_t *a, const uint16_t *b)
{
	for (int i = 0; i < THREADS; i++)
		if (b[i] > a[i])
			a[i] = b[i];
}

/* reverse makes sure that step later goes before the step early in some execution. */
static void reverse(int early, int later)
{
	static int after[DEPTH];
	int n = 0, first = 0, seen = 0;
	for (int k = early + 1; k < later; k++)
		if (!before(early, k))
			after[n++] = k;
	after[n++] = later;
	for (int k = 0; k < n; k++) {
		int t = path[after[k]].chosen, initial = !(seen >> t & 1);
		seen |= 1 << t;
		for (int m = 0; m < k && initial; m++)
			initial = !before(after[m], after[k]);
		first |= initial << t;
	}
	struct node *e = &path[early];
	if (first & (e->backtrack | e->sleep))
		return;
	int can = first & e->enabled;
	e->backtrack |= can ? can & -can : e->enabled;
}

/* order computes the clock of a new step and finds the races it is in. */
static void order(int at)
{
	struct node *n = &path[at];
	int me = n->chosen, last = -1;
	for (int k = at - 1; k >= 0 && last < 0; k--)
		if (path[k].chosen == me)
			last = k;
	if (last >= 0)
		memcpy(n->clock, path[last].clock, sizeof n->clock);
	else
		memset(n->clock, 0, sizeof n->clock);
	n->index = ++n->clock[me];
	static int races[DEPTH];
	int found = 0;
	for (int k = at - 1; k >= 0; k--) {
		if (path[k].chosen == me || n->clock[path[k].chosen] >= path[k].index || !conflict(taken(k), taken(at)))
			continue;
		races[found++] = k;
		join(n->clock, path[k].clock);
	}
	for (int k = 0; k < found; k++)
		reverse(races[k], at);
}

/* One execution. */

static int enabled(void)
{
	int m = 0;
	for (int i = 0; i < threads; i++)
		if (!thread[i].ended && (!thread[i].next.ready || thread[i].next.ready(thread[i].next.arg)))
			m |= 1 << i;
	return m;
}

static int all_ended(void)
{
	for (int i = 0; i < threads; i++)
		if (!thread[i].ended)
			return 0;
	return 1;
}

/* extend adds a node. 0: everything from here on is explored elsewhere. */
static int extend(int can, int last)
{
	struct node *n = &path[length];
	memset(n, 0, sizeof *n);
	n->enabled = (uint8_t)can;
	for (int i = 0; i < threads; i++)
		n->next[i] = thread[i].next;
	if (length) {
		struct node *b = n - 1;
		int asleep = (b->sleep | b->done) & ~(1 << b->chosen);
		for (int i = 0; i < threads; i++)
			if ((asleep >> i & 1) && !conflict(&b->next[i], taken(length - 1)))
				n->sleep |= (uint8_t)(1 << i);
	}
	can &= ~n->sleep;
	if (!can)
		return 0;
	n->chosen = (uint8_t)(last >= 0 && (can >> last & 1) ? last : __builtin_ctz((unsigned)can));
	n->backtrack = (uint8_t)(1 << n->chosen);
	length++;
	return 1;
}

int choose(int n)
{
	struct node *x = &path[depth];
	if (n <= 1)
		return 0;
	if (!x->choices)
		x->choices = n;
	return x->choice < n ? x->choice : 0;
}

static void print_step(int at)
{
	const struct step *s = taken(at);
	static const char *orders[] = {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};
	printf("step %d %d %p %s %s", at, path[at].chosen, s->pc ? (char *)s->pc - 1 : 0, s->what, s->atomic ? orders[s->order % 6] : "plain");
	if (path[at].choice)
		printf(s->kind == SIM_READ ? ", reads a value older by %d" : ", comes before %d that are there", path[at].choice);
	puts("");
}

static int once(void)
{
	int last = -1, whole = 1;
	execution++;
	failed = 0;
	why[0] = outcome[0] = 0;
	running = -1;
	world_reset();
	memory_reset();
	for (int i = 0; i < threads; i++)
		spawn(i);
	for (depth = 0;; depth++) {
		int can = enabled();
		if (!can) {
			if (!all_ended())
				fail("the threads wait for each other");
			break;
		}
		if (depth == DEPTH - 1)
			fail("the execution does not end");
		if (failed)
			break;
		if (depth == length && !extend(can, last)) {
			whole = 0;
			break;
		}
		if (!(can >> path[depth].chosen & 1)) {
			fprintf(stderr, "step %d of the world is not deterministic\n", depth);
			exit(3);
		}
		if (depth >= fresh)
			order(depth);
		last = path[depth].chosen;
		resume(last);
		events++;
	}
	if (depth > longest)
		longest = depth;
	if (whole && !failed)
		world_end();
	return whole;
}

/* next changes the path to one that is not explored yet. 0: there is none. */
static int next(void)
{
	for (; length; length--) {
		struct node *n = &path[length - 1];
		if (n->choice + 1 < n->choices) {
			n->choice++;
			break;
		}
		n->done |= (uint8_t)(1 << n->chosen);
		n->choice = n->choices = 0;
		int todo = n->backtrack & ~n->done & ~n->sleep & n->enabled;
		if (todo) {
			n->chosen = (uint8_t)__builtin_ctz((unsigned)todo);
			break;
		}
	}
	fresh = length - 1;
	return length > 0;
}

static void note_outcome(void)
{
	for (int i = 0; i < distinct; i++)
		if (!strcmp(outcomes[i], outcome))
			return;
	if (distinct < OUTCOMES)
		strcpy(outcomes[distinct++], outcome);
}

static void note_failure(void)
{
	if (failures++)
		return;
	strcpy(first_why, why);
	for (int i = 0; i < depth && i < length; i++)
		print_step(i);
}

/* explorer weak|strong LIMIT: at most so many executions. */
int main(int argc, char **argv)
{
	weak = argc > 1 && !strcmp(argv[1], "weak");
	long limit = atol(argv[argc - 2]), enough = atol(argv[argc - 1]);
	int whole = 0;
	threads = world_threads();
	while (!whole && executions + cut < limit && failures < enough) {
		if (once()) {
			executions++;
			if (failed)
				note_failure();
			else
				note_outcome();
		} else {
			cut++;
		}
		whole = !next();
	}
	for (int i = 0; i < distinct; i++)
		printf("outcome %s\n", outcomes[i]);
	print_races();
	printf("why %s\n", first_why);
	printf("total %ld %ld %ld %ld %ld %d %d %d\n", executions, cut, events, longest, failures, distinct, racy, whole);
	return 0;
}
