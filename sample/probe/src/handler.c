/* The signal handler copies the registers and the stack of its thread and serves the request in the
 * thread's slot. It takes no lock, allocates nothing, uses no thread-local storage, and never waits. */
#include "local.h"

struct sw_header *sw_shared;

static struct sw_slot *slots(struct sw_header *h) { return (struct sw_slot *)((char *)h + SW_HEADER_SIZE); }

void sw_copy(void *to, uint64_t from, uint64_t n)
{
	copy_bytes(to, from, n);
}

/* from_file reads this process's own memory where the kernel forbids process_vm_readv, and in emulators
 * that lack it. */
static long from_file(void *to, uint64_t from, uint64_t n)
{
	long fd = open_file("/proc/self/mem", 02000000 /* O_CLOEXEC */), r;
	if (fd < 0)
		return fd;
	r = sys6(NR_pread64, fd, P(to), (long)n, (long)from, 0, 0);
	sys3(NR_close, fd, 0, 0);
	return r;
}

/* sw_checked copies the readable bytes from an address on. It cannot fault. */
uint64_t sw_checked(void *to, uint64_t from, uint64_t n)
{
	struct vec local = {(uint64_t)to, n}, remote = {from, n};
	long r = sys6(NR_process_vm_readv, sys3(NR_getpid, 0, 0, 0), P(&local), 1, P(&remote), 1, 0);
	if (r == -EPERM || r == -ENOSYS)
		r = from_file(to, from, n);
	return r < 0 ? 0 : (uint64_t)r;
}

/* overflowed returns the clock of a slot if a signal is the overflow of its perf event, else 0. */
static uint32_t overflowed(const struct sw_slot *s, const struct info *si)
{
	uint32_t clock = __atomic_load_n(&s->clock, __ATOMIC_ACQUIRE), file = clock & SW_CLOCK_FILE;
	return si->code == POLL_IN && file && file == (uint32_t)si->value + 1 ? clock : 0;
}

/* find returns the slot that the signal's cookie names. A signal without a cookie (an event's overflow, or
 * the kernel had no room for it) belongs to the slot of the thread's number. */
static struct sw_slot *find(struct sw_header *h, const struct info *si, uint32_t tid)
{
	if ((si->code == SI_QUEUE || si->code == SI_TIMER) && si->value >> 32 == h->tag) {
		struct sw_slot *s = slots(h) + (si->value & (SW_SLOTS - 1));
		return s->tid == tid ? s : 0;
	}
	struct sw_slot *s = sw_slot_of(h, tid);
	return s && (s->ask != s->answered || overflowed(s, si)) ? s : 0;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t greater(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* interrupted finds where a thread was on its own stack when a signal moved it to the alternate stack. It
 * returns the start of the red zone there, or 0 if it is not found. */
static uint64_t interrupted(uint64_t low, uint64_t high, const struct frame *uc)
{
	struct frame first;
	uint64_t at = first_context(uc);
	if (at < uc->regs[REG_SP] || sw_checked(&first, at, sizeof first) != sizeof first)
		return 0;
	uint64_t sp = first.regs[REG_SP];
	if (!is_first(&first, at) || (low && sp - low >= high - low))
		return 0;
	return greater(sp & ~7ull, low + SW_RED_ZONE) - SW_RED_ZONE;
}

/* reach returns how many bytes to copy of a stack that may not be the thread's own. Until the tool has set
 * the bounds of the thread's stack, the copy extends to the C library's thread structure, so that the first
 * samples are complete too. */
static uint64_t reach(const struct sw_slot *s, uint64_t low, uint64_t from)
{
	uint64_t high = s->fs & ~7ull;
	return !low && high > from && high - from < SW_MAX_STACK ? high - from : SW_MAX_CHECKED;
}

/* Bytes of stack that a sample needs, and one with objects. */
enum { SAMPLE_STACK = 1536, OBJECTS_STACK = 7168 };

/* left returns how many bytes are left of the alternate stack on which the handler runs. Another library may have
 * given its threads small ones. */
static uint64_t left(const struct frame *uc)
{
	uint64_t n = (uint64_t)(uintptr_t)uc - uc->alt_sp;
	return n < uc->alt_size ? n : ~0ull;
}

static void drop(struct sw_header *h)
{
	__atomic_fetch_add(&h->dropped, 1, __ATOMIC_RELAXED);
}

static void sample(struct sw_header *h, struct sw_slot *s, const struct frame *uc, int why, uint32_t weight, uint64_t entry)
{
	if (left(uc) < SAMPLE_STACK) {
		drop(h);
		return;
	}
	/* Copy the red zone too: after a pop in an epilogue, unwind data still refers to the word below sp. */
	if (!s->fs)
		s->fs = thread_base();
	/* File.SetStack stores high before low. Load low first: then high belongs to it. */
	uint64_t low = __atomic_load_n(&s->low, __ATOMIC_ACQUIRE), high = __atomic_load_n(&s->high, __ATOMIC_RELAXED);
	uint64_t sp = uc->regs[REG_SP] & ~7ull, from = sp - SW_RED_ZONE, want = 0, below = 0, under = 0, room = 0, at;
	/* The thread's mapping may include its alternate stack, and guard pages between the two that are no mappings of
	 * their own (MADV_GUARD_INSTALL). */
	int alt = uc->alt_size && sp - uc->alt_sp < uc->alt_size;
	int own = low && !alt && from >= low && sp < high, flags = 0;
	if (alt) {
		flags |= SW_ON_ALT;
		under = interrupted(low, high, uc);
	}
	if (why != SW_ARMED) {
		want = own ? high - from : reach(s, low, from);
		flags |= own ? 0 : SW_FOREIGN;
		if (want > SW_MAX_STACK) {
			want = SW_MAX_STACK;
			flags |= SW_CUT;
		}
		if (flags & SW_ON_ALT)
			want = least(want, uc->alt_sp + uc->alt_size - from);
		if (under)
			below = low ? least(high - under, SW_MAX_STACK - SW_MAX_CHECKED) : SW_MAX_CHECKED;
		flags |= under && low && under + below < high ? SW_CUT : 0;
		room = h->heap_size && left(uc) >= OBJECTS_STACK ? SW_MAX_PAYLOAD : 0;
	}
	uint64_t size = (sizeof(struct sw_record) + SW_MAX_EXTRA + room + want + below + 8 + SW_ALIGN - 1) & ~(uint64_t)(SW_ALIGN - 1);
	struct sw_record *r = sw_claim(h, size, &at);
	if (!r) {
		drop(h);
		return;
	}
	char *extra = (char *)(r + 1), *objects = extra + SW_MAX_EXTRA, *stack = objects + room, *second;
	r->tid = s->tid;
	r->slot = (uint32_t)(s - slots(h));
	r->why = (uint16_t)why;
	r->time = entry;
	r->weight = weight;
	r->extra_size = 0;
	r->event = 0;
	r->payload_size = (uint32_t)room;
	r->since = why == SW_CLOCK ? thread_time() : 0;
	registers(r->regs, uc);
	if (own)
		sw_copy(stack, from, want);
	else if (want && !(want = sw_checked(stack, from, want)))
		want = sw_checked(stack, from = sp, SW_MAX_CHECKED); /* the red zone lies outside the stack */
	r->stack = from;
	r->stack_size = (uint32_t)want;
	second = stack + ((want + 7) & ~7ull);
	if (below && low)
		sw_copy(second, under, below);
	else if (below)
		below = sw_checked(second, under, below);
	r->below = under;
	r->below_size = below;
	if (room)
		sw_objects(h, s, r->regs, (uint64_t *)stack, want, objects);
	if (s->extra && s->extra_size <= SW_MAX_EXTRA && (is_returning(uc, h->patch) || sw_patched((uint64_t *)stack, want, h->patch) || sw_patched((uint64_t *)second, below, h->patch))) {
		r->extra_size = (uint32_t)sw_checked(extra, s->extra, s->extra_size);
		flags |= SW_PATCHED;
	}
	r->flags = (uint16_t)flags;
	r->nanos = (uint32_t)(now() - entry);
	__atomic_fetch_add(&h->nanos, r->nanos, __ATOMIC_RELAXED);
	__atomic_store_n(&r->commit, at | 1, __ATOMIC_RELEASE);
}

/* OURS marks seedwalk's timers, of any recording. */
enum { OURS = 0x5ea5d000 };

static int disarm(struct sw_header *h, struct sw_slot *s);
static int abandoned(struct sw_header *h, uint64_t time);

/* arm creates the timer of the thread's CPU time. */
static void arm(struct sw_header *h, struct sw_slot *s)
{
	struct { uint64_t value; int32_t sig, notify, tid, pad[11]; } event = {
		(uint64_t)h->tag << 32 | OURS | (uint64_t)(s - slots(h)), (int32_t)h->timer_signal, 4 /* SIGEV_THREAD_ID */, (int32_t)s->tid, {0}};
	uint64_t every = h->period, spec[4] = {every / 1000000000, every % 1000000000, every / 1000000000, every % 1000000000};
	int32_t id = -1;
	if (s->timer)
		return;
	/* The first period is a fraction that differs between threads, so that threads that start together are
	 * not sampled together. */
	uint64_t first = every / 16 * (1 + (s->tid * 2654435761u >> 28));
	spec[2] = first / 1000000000;
	spec[3] = first % 1000000000;
	long e = sys3(NR_timer_create, 3 /* CLOCK_THREAD_CPUTIME_ID */, P(&event), P(&id));
	if (e == 0 && (e = sys6(NR_timer_settime, id, 0, P(spec), 0, 0, 0)) != 0)
		sys3(NR_timer_delete, id, 0, 0);
	s->error = (uint32_t)-e;
	if (e)
		return;
	__atomic_store_n(&s->timer, (uint32_t)id + 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&h->timers, 1, __ATOMIC_RELAXED);
	/* Nothing referred to the timer while it was created: the recording or its tool may have ended. No other
	 * recording has begun: sw_wait_out waits for this handler. */
	if (__atomic_load_n(&h->left, __ATOMIC_SEQ_CST))
		disarm(h, s);
	else
		abandoned(h, now());
}

static int disarm(struct sw_header *h, struct sw_slot *s)
{
	uint32_t t = __atomic_exchange_n(&s->timer, 0, __ATOMIC_SEQ_CST);
	if (!t)
		return 0;
	sys3(NR_timer_delete, (long)t - 1, 0, 0);
	__atomic_fetch_sub(&h->timers, 1, __ATOMIC_RELAXED);
	return 1;
}

/* disarm_all deletes every timer. Any thread of the process may do that. */
static void disarm_all(struct sw_header *h)
{
	for (int i = 0; i < SW_SLOTS; i++)
		disarm(h, slots(h) + i);
}

/* sw_end ends a recording. It sets left first: a thread that creates a timer meanwhile reads left afterwards
 * and deletes its timer. */
void sw_end(struct sw_header *h)
{
	uint32_t none = 0;
	int first = __atomic_compare_exchange_n(&h->left, &none, SW_LEAVING, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	disarm_all(h);
	if (first)
		sw_put_back(h);
}

/* reap deletes the timers of ended threads. The kernel keeps a timer as long as its process, and counts it
 * against the limit of pending signals. Another thread's handler may run reap too: each marks the entry that
 * it works on, so that the tool does not reuse the slot, and only one of them works on it. */
static void reap(struct sw_header *h)
{
	if (!__atomic_exchange_n(&h->reaping, 0, __ATOMIC_ACQ_REL))
		return;
	for (int i = 0; i < SW_REAP; i++) {
		uint32_t at = __atomic_load_n(&h->reap[i], __ATOMIC_RELAXED);
		if (at - 1 >= SW_SLOTS || !__atomic_compare_exchange_n(&h->reap[i], &at, at | SW_REAPED, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		disarm(h, slots(h) + at - 1);
		__atomic_store_n(&h->reap[i], 0, __ATOMIC_RELEASE);
	}
}

/* abandoned stops all timers if the tool is dead. */
static int abandoned(struct sw_header *h, uint64_t time)
{
	uint64_t beat = __atomic_load_n(&h->heartbeat, __ATOMIC_RELAXED);
	if (time < beat || time - beat < h->stale)
		return 0;
	__atomic_fetch_add(&h->stopped, h->timers, __ATOMIC_RELAXED);
	disarm_all(h);
	return 1;
}

/* kept is true for n of 4096 calls at random, or always if n is 0. The time is the source of randomness. */
static int kept(uint32_t n, uint32_t tid, uint64_t time)
{
	uint64_t x = (time + ((uint64_t)tid << 40)) * 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
	return !n || x >> 52 < n;
}

/* expired takes the sample of an event's overflow. The event belongs to the tool and ends with it. The tool may
 * have given the slot another event since clock was read. */
static void expired(struct sw_header *h, struct sw_slot *s, uint32_t clock, const struct frame *uc, uint64_t entry)
{
	if (clock & SW_CLOCK_FIRST)
		__atomic_compare_exchange_n(&s->clock, &clock, clock & ~(uint32_t)SW_CLOCK_FIRST, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	else if (!kept(clock >> SW_CLOCK_BITS, s->tid, entry))
		return;
	sample(h, s, uc, SW_CLOCK, 1, entry);
}

/* ticked takes the sample of a timer's expiry. A timer expires only on the kernel's tick, however short its
 * period is. The overrun is CPU time that no sample locates. */
static void ticked(struct sw_header *h, struct sw_slot *s, const struct info *si, const struct frame *uc, uint64_t entry)
{
	uint32_t keep = h->timer_keep;
	if (!keep)
		sample(h, s, uc, SW_TIMER, 1 + (uint32_t)si->overrun, entry);
	else if (keep >= 4096 || kept(keep, s->tid, entry))
		sample(h, s, uc, SW_TIMER, 1, entry);
}

static void obey(struct sw_header *h, struct sw_slot *s, const struct frame *uc, uint64_t entry)
{
	switch (s->op) {
	case SW_OP_SAMPLE:
		sample(h, s, uc, SW_ASKED, 1, entry);
		break;
	case SW_OP_ARM: {
		if (abandoned(h, entry)) /* the tool died between the request and the signal */
			break;
		arm(h, s);
		sample(h, s, uc, SW_ARMED, 0, entry);
		break;
	}
	case SW_OP_CLOCK:
		sample(h, s, uc, SW_CLOCK, 1, entry);
		break;
	case SW_OP_DISARM:
		disarm(h, s);
		break;
	case SW_OP_LEAVE:
		sw_end(h);
		break;
	}
}

/* end_if_asked ends the recording on any thread that takes a signal: the thread that was asked to end it may
 * not run for a long time. */
static void end_if_asked(struct sw_header *h)
{
	if (h->ending && !h->left)
		sw_end(h);
}

/* handle serves a signal of the recording. chained means that another handler has called ours. */
static void handle(struct sw_header *h, const struct info *si, const struct frame *uc, int chained)
{
	uint64_t entry = now();
	if (chained)
		__atomic_store_n(&h->chained, 1, __ATOMIC_RELAXED);
	uint32_t tid = own_tid();
	struct sw_slot *s = find(h, si, tid);
	if (!s) {
		if (si->code == SI_TIMER && (si->value & 0xfffff000) == OURS)
			sys3(NR_timer_delete, si->timer, 0, 0); /* of a recording whose tool died */
		if (!sw_answer(h, si, tid))
			__atomic_fetch_add(&h->strangers, 1, __ATOMIC_RELAXED);
		end_if_asked(h);
		return;
	}
	__atomic_fetch_add(&h->signals, 1, __ATOMIC_RELAXED);
	uint32_t ask = __atomic_load_n(&s->ask, __ATOMIC_ACQUIRE);
	int asked = ask != s->answered;
	uint32_t clock = overflowed(s, si);
	if (clock)
		expired(h, s, clock, uc, entry);
	else if (si->code == SI_TIMER && !abandoned(h, entry))
		ticked(h, s, si, uc, entry);
	if (asked) { /* one SIGURG may be of a clock and of the tool, since it does not queue */
		obey(h, s, uc, entry);
		__atomic_store_n(&s->answered, ask, __ATOMIC_RELEASE);
	}
	reap(h);
	sw_answer(h, si, tid);
	end_if_asked(h);
}

/* inside counts the handlers that are running. */
static uint32_t inside;

/* A handler announces itself before it looks whether the recording has ended. sw_wait_out looks
 * for handlers after the end. So none of them writes into the memory of another recording.
 *
 * The kernel's call returns to the restorer. Any other return address is in a handler that has replaced ours,
 * such as the runtime's for PosixSignalRegistration. That handler takes our signals for the program's. */
void sw_handler(int sig, const struct info *si, const struct frame *uc)
{
	int chained = sig == SIGURG && (uintptr_t)__builtin_return_address(0) != (uintptr_t)sw_restorer;
	__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
	struct sw_header *h = sw_shared;
	if (h && !__atomic_load_n(&h->left, __ATOMIC_SEQ_CST))
		handle(h, si, uc, chained);
	__atomic_fetch_sub(&inside, 1, __ATOMIC_RELEASE);
}

/* sw_forked forgets the parent's recording in a forked process, and the handlers that ran at the fork. */
void sw_forked(void)
{
	sw_shared = 0;
	__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);
}

#ifndef SW_PATIENCE
#define SW_PATIENCE 100 /* milliseconds for threads that lost their processor in a handler */
#endif

/* sw_wait_out waits until no handler runs: 1 if so. */
int sw_wait_out(void)
{
	int64_t pause[2] = {0, 1000000};
	for (int i = 0; i < SW_PATIENCE; i++) {
		if (!__atomic_load_n(&inside, __ATOMIC_SEQ_CST))
			return 1;
		sys3(NR_nanosleep, P(pause), 0, 0);
	}
	return 0;
}
