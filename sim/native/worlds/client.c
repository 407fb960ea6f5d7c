/* capi/sampler_amd64.c: threads of a vendor's profiler sample while another thread closes the sampler.
 * OPENS 1: one thread opens it instead, and then also tries to sample. */
#include "native.h"

#include <string.h>

#include "sampler_amd64.c"

enum { OPENER = 10, SAMPLER, OTHER, MANAGED };
static struct {
	uint32_t rounds, closed, started;
} seen;
static uint32_t stopping, unloads, shown;
static void (*body)(void);
static uint64_t alone; /* the caller after all threads have ended */

const int sw_least_info = 1;
const char sw_least_why[] = "";
int sw_info_version = 1;
void *sw_info;
uint32_t sw_forwarded_created, sw_forwarded_assigned, sw_forwarded_loaded;
void sw_problem(const char *what) { (void)what; }
const char *sw_error_text(int error) { return (void)error, ""; }
int sw_told(int error) { return error; }
int sw_sized(void *to, uint32_t known, uint32_t least, const void *from) { return (void)least, memcpy(to, from, known), SEEDWALK_OK; }
int sw_answerable(const void *to, uint32_t least) { return (void)to, (void)least, SEEDWALK_OK; }
void sw_return(void *to, uint32_t known, const void *from) { if (to) memcpy(to, from, known); }
int sw_get_info(void *unknown) { return (void)unknown, 1; }
int sw_window_init(size_t bytes) { return (void)bytes, 0; }
int sw_copies_init(size_t bytes) { return (void)bytes, 0; }
uint64_t sw_copies_dropped(void) { return 0; }
int sw_check_forwarded(int *all) { return *all = 1, SEEDWALK_OK; }
int sw_signal_taken(void) { return 0; }
void sw_thread_created(uint64_t thread) { (void)thread; }
void sw_thread_assigned(uint64_t thread, uint32_t os_thread) { (void)thread, (void)os_thread; }
void sw_thread_destroyed(uint64_t thread) { (void)thread; }
void sw_thread_renamed(uint64_t thread, uint32_t units, const uint16_t *name) { (void)thread, (void)units, (void)name; }
uint64_t sw_thread_self(void) { return alone ? alone : OPENER + (uint64_t)sim_me(); }
struct sw_thread *sw_thread_by_tid(uint64_t tid) { return tid == MANAGED ? (struct sw_thread *)sw_stacks : 0; }
void sw_stop(void) { sim_store32(&stopping, 1); }
void sw_event_push(uint64_t kind, uint64_t a) { (void)kind, (void)a; }
void sw_unload(void) { unloads++; }

static int is_outside(void *word) { return !*(uint64_t *)word; }
static int has_body(void *word) { return (void)word, body != 0; }
static int has_begun(void *word) { return *(int *)word; }
void sw_sleep_us(unsigned us) { (void)us, sim_check(sim_load32(&stopping), "a round is waited for but not stopped"), sim_wait(&inside, sizeof inside, "wait for the round", is_outside, &inside); }

int sw_wait_flag(int *flag, int value, unsigned ms)
{
	(void)value, (void)ms;
	sim_wait(flag, sizeof *flag, "wait for Go", has_begun, flag);
	return __atomic_load_n(flag, __ATOMIC_SEQ_CST);
}

int sw_start_sampler(void (*f)(void))
{
	sim_store64((uint64_t *)&body, (uint64_t)f);
	return 0;
}

void swgoSamplerBegin(void) { sim_store32(&seen.started, 1); }

int swgoSamplerRound(int32_t flags, uint64_t thread, seedwalk_sampler_result *out)
{
	(void)flags, (void)thread, (void)out;
	sim_check(!sim_load32(&seen.closed), "a round begins in a sampler that is closed");
	sim_check(!__atomic_fetch_add(&seen.rounds, 1, __ATOMIC_SEQ_CST), "two rounds at a time");
	sw_stack_count = 1;
	__atomic_fetch_sub(&seen.rounds, 1, __ATOMIC_SEQ_CST);
	sim_check(!sim_load32(&seen.closed), "a round goes on in a sampler that is closed");
	if (!alone)
		sim_outcome("round");
	return SEEDWALK_OK;
}

UNSEEN static void show(void *client, const seedwalk_stack *stack) { (void)client, (void)stack, shown++; }

int world_threads(void) { return 3; }

UNSEEN void world_reset(void)
{
	state = OPENS ? CLOSED : OPEN;
	opener = OPENS ? 0 : OPENER + 9;
	inside = beginning = stopping = unloads = shown = 0;
	seen.rounds = seen.closed = seen.started = 0;
	begun = OPENS ? 0 : 1;
	looking = next_stack = sw_stack_count = 0;
	body = 0;
	sim_watch(&state, sizeof state);
	sim_watch(&opener, sizeof opener);
	sim_watch(&inside, sizeof inside);
	sim_watch(&begun, sizeof begun);
	sim_watch(&beginning, sizeof beginning);
	sim_watch(&body, sizeof body);
	sim_watch(&seen, sizeof seen);
	sim_watch(&sw_stack_count, sizeof sw_stack_count);
	sim_watch(&next_stack, sizeof next_stack);
}

static int take(void)
{
	seedwalk_sampler_request q = {.size = sizeof q, .on_stack = show};
	return seedwalk_sampler_sample(&q, 0);
}

static void open_sampler(void)
{
	seedwalk_sampler_options o = {.size = sizeof o, .info = &o};
	sim_check(seedwalk_sampler_open(&o) == SEEDWALK_OK, "the sampler does not open");
	sim_check(sim_load32(&seen.started), "the sampler is open before Go has started");
	sim_check(take() == SEEDWALK_WRONG_THREAD, "the runtime's thread samples");
}

void world_thread(int i)
{
	if (i == 0 && OPENS) {
		open_sampler();
	} else if (i == 0) {
		sim_check(seedwalk_sampler_close() == SEEDWALK_OK && sim_load32(&stopping), "a round is not stopped");
		sim_store32(&seen.closed, 1);
	} else if (i == 1 && OPENS) {
		sim_wait(&body, sizeof body, "wait for the opener", has_body, 0);
		((void (*)(void))sim_load64((uint64_t *)&body))();
	} else {
		const seedwalk_stack *s;
		take();
		if (i == 1)
			seedwalk_sampler_next(&s);
	}
}

/* What one thread does alone. */
UNSEEN void world_end(void)
{
	const seedwalk_stack *s = sw_stacks;
	sim_check(!inside && state == (OPENS ? OPEN : ENDED), "the sampler's state");
	seedwalk_sampler_module_unloading(1);
	sim_check(unloads == 1, "a module is unloaded while its methods are named");
	state = OPEN;
	seen.closed = 0;
	alone = MANAGED;
	sim_check(take() == SEEDWALK_WRONG_THREAD, "a managed thread samples");
	shown = 0;
	alone = OTHER;
	sim_check(take() == SEEDWALK_OK && shown == 1, "on_stack does not get the stack");
	sim_check(seedwalk_sampler_next(&s) == SEEDWALK_OK && !s, "a stack is given twice");
	alone = 0;
}
