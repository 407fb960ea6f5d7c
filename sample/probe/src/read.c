/* Serves the tool's reads in the handler of the requested thread. The kernel copies, so that a bad address
 * only ends the copy. */
#include "local.h"
#include "read.h"

#if defined(__aarch64__)
enum { OPENAT = 56, PIPE2 = 59, WRITE = 64 };
#else
enum { OPENAT = 257, PIPE2 = 293, WRITE = 1 };
#endif
enum { NONBLOCK = 04000, CLOEXEC = 02000000, PAGE = 4096, FUTEX_WAKE = 1 };

static struct sw_read *request(struct sw_header *h, int i)
{
	return (struct sw_read *)((char *)h + SW_READ_AT + i * SW_READ_SIZE);
}

/* room returns where an answer is written: behind the ring's second mapping. */
static char *room(struct sw_header *h, int i)
{
	return (char *)h + SW_BEFORE_RING + 2l * SW_RING_SIZE + (long)i * SW_READ_ROOM;
}

/* piped copies through a pipe, page by page. It copies nothing of a page that is only partly readable. */
static uint64_t piped(char *to, uint64_t from, uint64_t n)
{
	int32_t end[2];
	uint64_t done = 0;
	if (sys3(PIPE2, P(end), NONBLOCK | CLOEXEC, 0))
		return 0;
	while (done < n) {
		long step = PAGE - (long)((from + done) % PAGE);
		if ((uint64_t)step > n - done)
			step = (long)(n - done);
		if (sys3(WRITE, end[1], (long)(from + done), step) != step || sys3(NR_read, end[0], P(to + done), step) != step)
			break;
		done += (uint64_t)step;
	}
	sys3(NR_close, end[0], 0, 0);
	sys3(NR_close, end[1], 0, 0);
	return done;
}

/* copied copies memory up to the first unreadable byte and returns the size. It uses a pipe where the kernel
 * refuses process_vm_readv. */
static uint64_t copied(char *to, uint64_t from, uint64_t n)
{
	enum { REFUSED = -1, MISSING = -38 };
	struct vec local = {(uint64_t)to, n}, remote = {from, n};
	long r = sys6(NR_process_vm_readv, sys3(NR_getpid, 0, 0, 0), P(&local), 1, P(&remote), 1, 0);
	if (r == REFUSED || r == MISSING)
		return piped(to, from, n);
	return r < 0 ? 0 : (uint64_t)r;
}

/* mappings copies as much of /proc/self/maps as fits. The kernel returns it in pieces. */
static uint64_t mappings(char *to, uint64_t n)
{
	uint64_t done = 0;
	long fd = sys6(OPENAT, -100 /* AT_FDCWD */, P("/proc/self/maps"), CLOEXEC, 0, 0, 0), r = 1;
	if (fd < 0)
		return 0;
	while (done < n && (r = sys3(NR_read, fd, P(to + done), (long)(n - done))) > 0)
		done += (uint64_t)r;
	sys3(NR_close, fd, 0, 0);
	return r < 0 ? 0 : done;
}

static uint64_t answer(const struct sw_read *r, char *to)
{
	uint64_t n = r->size < SW_READ_ROOM ? r->size : SW_READ_ROOM;
	switch (r->what) {
	case SW_READ_MEMORY:
		return copied(to, r->from, n);
	case SW_READ_PIPED:
		return piped(to, r->from, n);
	case SW_READ_MAPPINGS:
		return mappings(to, n);
	}
	return 0;
}

/* sw_answer serves the reads that the tool requests of the calling thread. It reports whether the signal was
 * sent for a read. The read itself may have been served by an earlier signal, or withdrawn by the tool. */
int sw_answer(struct sw_header *h, const struct info *si, uint32_t tid)
{
	for (int i = 0; i < SW_READS; i++) {
		struct sw_read *r = request(h, i);
		uint32_t state = __atomic_load_n(&r->state, __ATOMIC_ACQUIRE);
		if (state % SW_READ_STATES != SW_READ_ASKED || __atomic_load_n(&r->tid, __ATOMIC_RELAXED) != tid)
			continue;
		if (!__atomic_compare_exchange_n(&r->state, &state, state - SW_READ_ASKED + SW_READ_TAKEN, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		uint64_t begin = now();
		r->got = (uint32_t)answer(r, room(h, i));
		r->nanos = (uint32_t)(now() - begin);
		__atomic_store_n(&r->state, state - SW_READ_ASKED + SW_READ_DONE, __ATOMIC_RELEASE);
		sys3(NR_futex, P(&r->state), FUTEX_WAKE, 1);
	}
	return si->code == SI_QUEUE && si->value == ((uint64_t)h->tag << 32 | SW_READ_COOKIE);
}
