/* Simulates memory with the ordering rules of C11. Each atomic location keeps its stores in
 * modification order. Each thread has a view: for each location, the newest store that it knows.
 * A load may read that store or any newer one. A store may come before stores that its thread
 * does not know. A release store carries its thread's view. A load that acquires the store adds
 * that view to the view of its own thread.
 *
 * Gaps: a load never reads a store that comes later in time (load buffering). Plain loads read
 * the newest store. Words below 4 bytes have no history. */
#include "explorer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REGIONS = 8, LOCATIONS = 1024, STORES = 100, KNOWLEDGE = 3000, CELLS = 1 << 18, RACES = 64 };
enum { CONSUME = 1, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST };

typedef uint8_t view[LOCATIONS]; /* the number of a store, by location */

struct knowledge { clocks clock; view view; };
struct store {
	uint64_t value;
	int gives;     /* the knowledge that whoever acquires it has, -1 = none */
	uint8_t place; /* in modification order */
	uint8_t used;  /* a read-modify-write stands directly behind it */
};
struct location {
	uintptr_t addr;
	uint32_t size;
	int stores, seq_cst; /* number of the last sequentially consistent store */
	struct store store[STORES];
	uint8_t order[STORES]; /* numbers of stores by place */
};
struct cell { /* of 4 bytes: who accessed it last */
	uint32_t execution;
	int location;
	uint16_t written, read[THREADS];
	uint8_t writer, write_atomic, read_atomic;
	void *write_pc, *read_pc[THREADS];
};

static struct { uintptr_t low, size; uint32_t cell; } region[REGIONS];
static int regions;
static uint32_t cells_used;
static struct cell cells[CELLS];
static uintptr_t alias_low, alias_size, alias_by;
static struct location locations[LOCATIONS];
static int used;
static struct knowledge pool[KNOWLEDGE], known[THREADS];
static int pooled, fenced[THREADS]; /* knowledge at the thread's release fence, -1 = none */
static struct { uintptr_t addr; uint32_t size; } plain; /* the store that the running thread does now */

static struct { void *a, *b; int atomic_a, atomic_b; } races[RACES];
int racy;

/* What is watched. */

void sim_watch(const void *p, size_t n)
{
	uintptr_t low = (uintptr_t)p & ~7ul;
	for (int i = 0; i < regions; i++)
		if (region[i].low == low)
			return;
	uint32_t size = (uint32_t)(n + 15) & ~7u;
	if (regions == REGIONS || cells_used + size / 4 > CELLS) {
		fprintf(stderr, "too much is watched\n");
		exit(3);
	}
	region[regions].low = low;
	region[regions].size = size;
	region[regions++].cell = cells_used;
	cells_used += size / 4;
}

void sim_alias(const void *p, size_t n, size_t by)
{
	alias_low = (uintptr_t)p;
	alias_size = n;
	alias_by = by;
}

static uintptr_t canonical(const void *p)
{
	uintptr_t a = (uintptr_t)p;
	return a - alias_low < alias_size ? a - alias_by : a;
}

static struct cell *cell_of(uintptr_t a)
{
	for (int i = 0; i < regions; i++)
		if (a - region[i].low < region[i].size) {
			struct cell *c = &cells[region[i].cell + (a - region[i].low) / 4];
			if (c->execution != execution) {
				memset(c, 0, sizeof *c);
				c->execution = execution;
				c->location = -1;
			}
			return c;
		}
	return 0;
}

/* Races. */

static void race(void *a, int atomic_a, void *b, int atomic_b)
{
	for (int i = 0; i < racy; i++)
		if (races[i].a == a && races[i].b == b)
			return;
	if (racy < RACES) {
		races[racy].a = a;
		races[racy].b = b;
		races[racy].atomic_a = atomic_a;
		races[racy++].atomic_b = atomic_b;
	}
}

void print_races(void)
{
	for (int i = 0; i < racy; i++)
		printf("race %p %s %p %s\n", (char *)races[i].a - 1, races[i].atomic_a ? "atomic" : "plain", (char *)races[i].b - 1, races[i].atomic_b ? "atomic" : "plain");
}

/* judge compares an access with the last ones of other threads. */
static void judge(const struct step *s)
{
	uint16_t *clock = known[running].clock;
	for (uintptr_t a = s->addr & ~3ul; a < s->addr + s->size; a += 4) {
		struct cell *c = cell_of(a);
		if (!c)
			return;
		if (c->written > clock[c->writer] && c->writer != running && !(c->write_atomic && s->atomic))
			race(c->write_pc, c->write_atomic, s->pc, s->atomic);
		for (int t = 0; t < threads && (s->kind & SIM_WRITE); t++)
			if (t != running && c->read[t] > clock[t] && !((c->read_atomic >> t & 1) && s->atomic))
				race(c->read_pc[t], c->read_atomic >> t & 1, s->pc, s->atomic);
		if (s->kind & SIM_WRITE) {
			c->written = clock[running];
			c->writer = (uint8_t)running;
			c->write_atomic = s->atomic;
			c->write_pc = s->pc;
		}
		if (s->kind & SIM_READ) {
			c->read[running] = clock[running];
			c->read_pc[running] = s->pc;
			c->read_atomic = (uint8_t)((c->read_atomic & ~(1 << running)) | s->atomic << running);
		}
	}
}

/* Locations. */

static uint64_t get(uintptr_t a, uint32_t n)
{
	uint64_t v = 0;
	memcpy(&v, (void *)a, n);
	return v;
}

/* insert puts a store at a place of the modification order. */
static int insert(struct location *l, int place, uint64_t value, int gives)
{
	int n = l->stores++;
	if (n == STORES - 1) {
		fprintf(stderr, "too many stores to a location\n");
		exit(3);
	}
	for (int k = n; k > place; k--) {
		l->order[k] = l->order[k - 1];
		l->store[l->order[k]].place = (uint8_t)k;
	}
	l->order[place] = (uint8_t)n;
	l->store[n] = (struct store){value, gives, (uint8_t)place, 0};
	return n;
}

static struct store *newest(struct location *l) { return &l->store[l->order[l->stores - 1]]; }

static struct location *new_location(uintptr_t a, uint32_t n)
{
	if (used == LOCATIONS) {
		fprintf(stderr, "too many locations\n");
		exit(3);
	}
	struct location *l = &locations[used];
	l->addr = a;
	l->size = n;
	l->stores = l->seq_cst = 0;
	cell_of(a)->location = cell_of(a + n - 4)->location = used++;
	return l;
}

/* split makes two halves of a word: it is accessed in both sizes. */
static void split(struct location *old)
{
	int from = (int)(old - locations);
	for (uint32_t half = 0; half < 8; half += 4) {
		struct location *l = new_location(old->addr + half, 4);
		int to = (int)(l - locations);
		memcpy(l->store, old->store, sizeof l->store);
		memcpy(l->order, old->order, sizeof l->order);
		l->stores = old->stores;
		l->seq_cst = old->seq_cst;
		for (int i = 0; i < l->stores; i++)
			l->store[i].value = (uint32_t)(old->store[i].value >> 8 * half);
		for (int i = 0; i < pooled; i++)
			pool[i].view[to] = pool[i].view[from];
		for (int i = 0; i < threads; i++)
			known[i].view[to] = known[i].view[from];
	}
}

/* find finds or makes the history of a word, none if it has been split. */
static struct location *find(uintptr_t a, uint32_t n)
{
	struct cell *c = cell_of(a), *end = n == 8 ? cell_of(a + 4) : c;
	if (!c || !end || n < 4 || n > 8)
		return 0;
	if (c->location < 0 && end->location < 0)
		return new_location(a, n);
	struct location *l = c->location < 0 ? 0 : &locations[c->location];
	if (l && n == 4 && l->size == 8) {
		split(l);
		l = &locations[c->location];
	}
	return l && l->addr == a && l->size == n ? l : 0;
}

/* location is find, with the value that is in memory by now. */
static struct location *location(uintptr_t a, uint32_t n)
{
	struct location *l = find(a, n);
	uint64_t v = get(a, n);
	if (l && (!l->stores || newest(l)->value != v)) /* the world set it up */
		insert(l, l->stores, v, -1);
	return l;
}

static void join(struct knowledge *to, const struct knowledge *from)
{
	for (int t = 0; t < THREADS; t++)
		if (from->clock[t] > to->clock[t])
			to->clock[t] = from->clock[t];
	for (int i = 0; i < used; i++)
		if (locations[i].store[from->view[i]].place > locations[i].store[to->view[i]].place)
			to->view[i] = from->view[i];
}

static int keep(const struct knowledge *a, int more)
{
	if (pooled == KNOWLEDGE) {
		fprintf(stderr, "too many releases\n");
		exit(3);
	}
	pool[pooled] = *a;
	if (more >= 0)
		join(&pool[pooled], &pool[more]);
	return pooled++;
}

static int floor_of(struct location *l, int order)
{
	int f = l->store[known[running].view[l - locations]].place, s = l->store[l->seq_cst].place;
	return order == SEQ_CST && s > f ? s : f;
}

static void see(struct location *l, struct store *s, int order)
{
	uint8_t *mine = &known[running].view[l - locations];
	if (s->place > l->store[*mine].place)
		*mine = (uint8_t)(s - l->store);
	if (s->gives >= 0 && order != 0 && order != RELEASE)
		join(&known[running], &pool[s->gives]);
}

/* put makes a store. read is what a read-modify-write has read. */
static void put(struct location *l, int place, uint64_t v, int order, struct store *read)
{
	int gives = fenced[running], n = insert(l, place, v, -1), carried = read ? read->gives : -1;
	known[running].view[l - locations] = (uint8_t)n;
	if (order >= RELEASE)
		gives = keep(&known[running], carried);
	else if (gives >= 0 && carried >= 0)
		gives = keep(&pool[gives], carried);
	else if (gives < 0)
		gives = carried;
	l->store[n].gives = gives;
	if (read)
		read->used = 1;
	if (order == SEQ_CST && l->store[n].place >= l->store[l->seq_cst].place)
		l->seq_cst = n;
}

void memory_reset(void)
{
	used = pooled = 0;
	plain.size = 0;
	memset(known, 0, sizeof known);
	for (int t = 0; t < THREADS; t++) {
		known[t].clock[t] = 1;
		fenced[t] = -1;
	}
}

/* words calls f for every word of a range that may have a history. */
static void words(uintptr_t addr, uint32_t size, void f(uintptr_t, uint32_t))
{
	if (size == 4)
		f(addr, 4);
	for (uintptr_t a = (addr + 7) & ~7ul; a + 8 <= addr + size; a += 8)
		f(a, 8);
}

static void value_before(uintptr_t a, uint32_t n)
{
	if (!location(a, n) && n == 8) {
		location(a, 4);
		location(a + 4, 4);
	}
}

static void value_after(uintptr_t a, uint32_t n)
{
	struct location *l = find(a, n);
	if (l) {
		put(l, l->stores, get(a, n), 0, 0);
	} else if (n == 8) {
		value_after(a, 4);
		value_after(a + 4, 4);
	}
}

void memory_flush(void)
{
	uint32_t n = plain.size;
	plain.size = 0;
	if (n && running >= 0)
		words(plain.addr, n, value_after);
}

/* Accesses. */

static int access(const void *p, uint32_t n, int kind, int atomic, int order, void *pc, const char *what)
{
	uintptr_t a = canonical(p);
	if (running < 0)
		return 0;
	memory_flush();
	if (!cell_of(a))
		return 0;
	struct step s = {.kind = (uint8_t)kind, .atomic = (uint8_t)atomic, .order = (uint8_t)order, .size = n, .addr = a, .pc = pc, .what = what};
	point(s);
	known[running].clock[running]++;
	judge(&s);
	if (!atomic && (kind & SIM_WRITE) && n >= 4) {
		words(a, n, value_before);
		plain.addr = a;
		plain.size = n;
	}
	return 1;
}

/* read returns the store that is so much older than the newest. */
static uint64_t read(struct location *l, int older, int order)
{
	struct store *s = &l->store[l->order[l->stores - 1 - older]];
	see(l, s, order);
	return s->value;
}

static int readable(struct location *l, int order) { return weak ? l->stores - floor_of(l, order) : 1; }

static uint64_t load(const void *p, uint32_t n, int order, void *pc)
{
	uintptr_t a = canonical(p);
	if (!access(p, n, SIM_READ, 1, order, pc, "load"))
		return get(a, n);
	struct location *l = location(a, n), *high;
	if (l)
		return read(l, choose(readable(l, order)), order);
	if (n != 8 || !(l = location(a, 4)) || !(high = location(a + 4, 4)))
		return get(a, n);
	int each = readable(l, order), one = choose(each * readable(high, order));
	uint64_t low = read(l, one % each, order);
	return read(high, one / each, order) << 32 | low;
}

/* places is how many places a store may take, from the end: behind its thread's view, and not
 * between a read-modify-write and what that has read. */
static int places(struct location *l, int order)
{
	int n = 1;
	for (int k = l->stores - 1; weak && k > floor_of(l, order); k--)
		n++;
	return n;
}

static void store(void *p, uint64_t v, uint32_t n, int order, void *pc)
{
	struct location *l = access(p, n, SIM_WRITE, 1, order, pc, "store") ? location(canonical(p), n) : 0;
	if (l) {
		int earlier = choose(places(l, order)), place = l->stores - earlier;
		while (place < l->stores && l->store[l->order[place - 1]].used)
			place++;
		int newer = place < l->stores;
		put(l, place, v, order, 0);
		if (newer)
			return;
	}
	memcpy(p, &v, n);
}

enum { EXCHANGE, ADD, SUB, AND, OR, COMPARE };

static uint64_t modify(void *p, uint32_t n, int op, uint64_t expected, uint64_t v, int order, int failing, void *pc)
{
	static const char *names[] = {"exchange", "add", "sub", "and", "or", "compare"};
	struct location *l = access(p, n, SIM_BOTH, 1, order, pc, names[op]) ? location(canonical(p), n) : 0;
	uint64_t was = get((uintptr_t)p, n), mask = n == 8 ? ~0ull : (1ull << 8 * n) - 1;
	uint64_t now = op == ADD ? was + v : op == SUB ? was - v : op == AND ? (was & v) : op == OR ? (was | v) : v;
	int writes = op != COMPARE || was == (expected & mask);
	if (l) {
		struct store *s = newest(l);
		see(l, s, writes ? order : failing);
		if (writes)
			put(l, l->stores, now & mask, order, s);
	}
	if (writes)
		memcpy(p, &now, n);
	return was;
}

#define HERE __builtin_return_address(0)

void sim_range(const void *p, uint32_t n, int kind) { access(p, n, kind, 0, 0, HERE, kind == SIM_READ ? "read" : "write"); }
void sim_syscall(const void *p, int kind, const char *what) { access(p, 4, kind, 1, 0, HERE, what); }
void sim_pages(void *p, uint32_t n)
{
	access(p, n, SIM_WRITE, 1, 0, HERE, "mmap");
	memset(p, 0, n);
	for (int i = 0; i < used; i++) {
		struct location *l = &locations[i];
		if (l->addr - (uintptr_t)p >= n)
			continue;
		l->seq_cst = insert(l, l->stores, 0, -1);
		for (int t = 0; t < threads; t++)
			known[t].view[i] = (uint8_t)l->seq_cst;
	}
}
uint64_t sim_load64(const uint64_t *p) { return load(p, 8, SEQ_CST, HERE); }
uint32_t sim_load32(const uint32_t *p) { return (uint32_t)load(p, 4, SEQ_CST, HERE); }
void sim_store64(uint64_t *p, uint64_t v) { store(p, v, 8, SEQ_CST, HERE); }
void sim_store32(uint32_t *p, uint32_t v) { store(p, v, 4, SEQ_CST, HERE); }

void sim_wait(const void *p, uint32_t n, const char *what, int (*ready)(void *), void *arg)
{
	if (running < 0)
		return;
	memory_flush();
	struct step s = {.kind = SIM_READ, .atomic = 1, .order = SEQ_CST, .size = n, .addr = canonical(p), .pc = HERE, .what = what, .ready = ready, .arg = arg};
	point(s);
	struct location *l = location(s.addr, n);
	if (l) /* the kernel woke it because of the newest value */
		see(l, newest(l), 0);
}

/* The compiler's calls (gcc and clang, -fsanitize=thread). */

#define PLAIN(name, n, kind) void name(void *p); void name(void *p) { access(p, n, kind, 0, 0, HERE, kind == SIM_READ ? "read" : "write"); }
#define PLAINS(n) PLAIN(__tsan_read##n, n, SIM_READ) PLAIN(__tsan_write##n, n, SIM_WRITE)
#define UNALIGNED(n) PLAIN(__tsan_unaligned_read##n, n, SIM_READ) PLAIN(__tsan_unaligned_write##n, n, SIM_WRITE)
PLAINS(1) PLAINS(2) PLAINS(4) PLAINS(8) PLAINS(16) UNALIGNED(2) UNALIGNED(4) UNALIGNED(8) UNALIGNED(16)

void __tsan_init(void);
void __tsan_func_entry(void *);
void __tsan_func_exit(void);
void __tsan_read_range(void *, unsigned long);
void __tsan_write_range(void *, unsigned long);
void __tsan_atomic_thread_fence(int);
void __tsan_init(void) {}
void __tsan_func_entry(void *pc) { (void)pc; }
void __tsan_func_exit(void) {}
void __tsan_read_range(void *p, unsigned long n) { access(p, (uint32_t)n, SIM_READ, 0, 0, HERE, "read"); }
void __tsan_write_range(void *p, unsigned long n) { access(p, (uint32_t)n, SIM_WRITE, 0, 0, HERE, "write"); }

void __tsan_atomic_thread_fence(int order)
{
	memory_flush();
	if (order != RELEASE) {
		fprintf(stderr, "only release fences are simulated\n");
		exit(3);
	}
	if (running >= 0)
		fenced[running] = keep(&known[running], -1);
}

#define OPERATION(B, T, name, op) \
	T __tsan_atomic##B##_##name(T *p, T v, int o); \
	T __tsan_atomic##B##_##name(T *p, T v, int o) { return (T)modify(p, sizeof(T), op, 0, v, o, o, HERE); }
#define COMPARISON(B, T, name) \
	int __tsan_atomic##B##_compare_exchange_##name(T *p, T *e, T v, int o, int f); \
	int __tsan_atomic##B##_compare_exchange_##name(T *p, T *e, T v, int o, int f) \
	{ \
		T was = (T)modify(p, sizeof(T), COMPARE, *e, v, o, f, HERE); \
		int same = was == *e; \
		*e = was; \
		return same; \
	}
#define ATOMIC(B, T) \
	T __tsan_atomic##B##_load(const T *p, int o); \
	T __tsan_atomic##B##_load(const T *p, int o) { return (T)load(p, sizeof(T), o, HERE); } \
	void __tsan_atomic##B##_store(T *p, T v, int o); \
	void __tsan_atomic##B##_store(T *p, T v, int o) { store(p, v, sizeof(T), o, HERE); } \
	T __tsan_atomic##B##_compare_exchange_val(T *p, T e, T v, int o, int f); \
	T __tsan_atomic##B##_compare_exchange_val(T *p, T e, T v, int o, int f) { return (T)modify(p, sizeof(T), COMPARE, e, v, o, f, HERE); } \
	OPERATION(B, T, exchange, EXCHANGE) OPERATION(B, T, fetch_add, ADD) OPERATION(B, T, fetch_sub, SUB) \
	OPERATION(B, T, fetch_and, AND) OPERATION(B, T, fetch_or, OR) COMPARISON(B, T, strong) COMPARISON(B, T, weak)
ATOMIC(8, uint8_t) ATOMIC(16, uint16_t) ATOMIC(32, uint32_t) ATOMIC(64, uint64_t)
