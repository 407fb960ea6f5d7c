/* sample/probe/src/read.c: the tool asks two threads for a read, one after the other, until one answers. The
 * tool is Memory.attempt of sample/probe/ask_linux.go: it withdraws a request that no thread has taken. */
#include "world.h"

#include "read.c"

static char file[SW_BEFORE_RING + 2 * SW_RING_SIZE + SW_READS * SW_READ_ROOM] __attribute__((aligned(4096)));
static struct sw_header *const shared = (struct sw_header *)file;
static uint64_t words[2];
static uint32_t sent[2];

int world_threads(void) { return 3; }

UNSEEN void world_reset(void)
{
	sim_kernel_reset();
	memset(request(shared, 0), 0, SW_READ_SIZE);
	memset(room(shared, 0), 0, sizeof words[0]);
	sim_watch(request(shared, 0), SW_READ_SIZE);
	sim_watch(room(shared, 0), sizeof words[0]);
	sim_watch(sent, sizeof sent);
	sim_watch(words, sizeof words);
	for (int i = 0; i < 2; i++) {
		words[i] = 0x5eed00u + (uint64_t)i;
		sent[i] = 0;
	}
}

static int is_sent(void *n) { return *(uint32_t *)n != 0; }
static int is_over(void *state) { return *(uint32_t *)state % SW_READ_STATES != SW_READ_TAKEN; }

/* attempt reports whether thread i answered. */
static int attempt(struct sw_read *r, uint32_t seq, int i)
{
	uint32_t asked = seq | SW_READ_ASKED;
	r->what = SW_READ_MEMORY;
	r->from = (uint64_t)&words[i];
	r->size = sizeof words[i];
	sim_store32(&r->tid, 1001 + (uint32_t)i);
	sim_store32(&r->state, asked);
	sim_store32(&sent[i], 1);
	if (sim_load32(&r->state) == (seq | SW_READ_DONE))
		return 1;
	if (__atomic_compare_exchange_n(&r->state, &asked, seq | SW_READ_FREE, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return 0;
	sim_wait(&r->state, sizeof r->state, "wait for the answer", is_over, &r->state);
	return sim_load32(&r->state) == (seq | SW_READ_DONE);
}

void world_thread(int i)
{
	struct sw_read *r = request(shared, 0);
	if (i > 0) {
		struct info si = {.code = SI_QUEUE};
		sim_wait(&sent[i - 1], sizeof sent[0], "wait for a signal", is_sent, &sent[i - 1]);
		(void)sim_load32(&sent[i - 1]); /* the kernel orders what was written before a signal */
		sw_answer(shared, &si, 1000 + (uint32_t)i);
		return;
	}
	int by = 0;
	while (by < 2 && !attempt(r, (uint32_t)(by + 1) * SW_READ_STATES, by))
		by++;
	if (by < 2) {
		uint64_t word;
		sim_copy(&word, (uint64_t)room(shared, 0), sizeof word);
		sim_check(r->got == sizeof word && word == 0x5eed00u + (uint64_t)by, "the answer is of another read");
	}
	sim_store32(&sent[1], 1); /* a late signal finds nothing to do */
	sim_outcome(by == 0 ? "first" : by == 1 ? "second" : "none");
}

UNSEEN void world_end(void) {}
