/* What a thread's stack refers to in the managed heap, read at the moment of the sample:
 * chains of objects, by rules that the tool has given for types. Every read is checked, and
 * their number is bounded. The tool learns types from what it finds here: a type without a
 * rule is recorded, and the chain ends there. */
#include "local.h"

enum {
	CANDIDATES = 96,  /* words of a stack that are looked up */
	SCANNED = 4096,   /* words of a stack */
	BATCH = 32,       /* looked up at once */
	BOXES = 4,        /* chains of one sample that begin with an async method, from the leaf on */
	TASKS = 2,        /* the same with a task, from the root on: the one that runs is there */
	STEPS = 40,       /* objects of one chain */
	NOVEL = 16,       /* types without a rule that are recorded */
	BODY = 256,       /* bytes that are read of an object */
	TEXT = 64,        /* bytes of a string that are copied */
	PROBES = 8,       /* places of the table where a type is looked for */
};

struct entry { uint64_t at, what; };

/* found is the room for what one sample has found. */
struct found {
	struct sw_header *h;
	struct entry *out;
	int n, novel;
};

static struct sw_rule *rules(struct sw_header *h)
{
	return (struct sw_rule *)((char *)h + SW_BEFORE_RING) - SW_RULES;
}

/* rule_of is the rule of a type, 0 if it has none. */
static uint64_t rule_of(struct sw_header *h, uint64_t table)
{
	uint64_t i = (table >> 3) * 0x9e3779b97f4a7c15ull >> 52;
	for (int k = 0; k < PROBES; k++) {
		struct sw_rule *r = rules(h) + ((i + (uint64_t)k) & (SW_RULES - 1));
		uint64_t t = __atomic_load_n(&r->table, __ATOMIC_ACQUIRE);
		if (t == table)
			return r->rule;
		if (!t)
			return 0;
	}
	return 0;
}

static int in_heap(const struct sw_header *h, uint64_t w)
{
	return !(w & 7) && w - h->heap < h->heap_size;
}

static int add(struct found *f, uint64_t at, uint64_t what)
{
	if (f->n >= SW_OBJECTS)
		return 0;
	f->out[f->n++] = (struct entry){at, what};
	return 1;
}

static void novel(struct found *f, uint64_t at, uint64_t table)
{
	if (f->novel < NOVEL && add(f, at | SW_OBJECT_NOVEL, table))
		f->novel++;
}

/* tables reads the first word of n <= BATCH objects, 0 where it cannot be read. */
static void tables(const uint64_t *at, uint64_t *out, int n)
{
	struct vec remote[BATCH], local = {P(out), 0};
	int i = 0;
	for (int k = 0; k < n; k++) {
		remote[k] = (struct vec){at[k], 8};
		out[k] = 0;
	}
	while (i < n) {
		local = (struct vec){P(out + i), 8 * (uint64_t)(n - i)};
		long r = sys6(NR_process_vm_readv, sys3(NR_getpid, 0, 0, 0), P(&local), 1, P(remote + i), n - i, 0);
		if (r == -EPERM || r == -ENOSYS)
			r = (long)sw_checked(out + i, at[i], 8);
		if (r > 0)
			i += (int)(r / 8);
		if (i < n)
			out[i++] = 0; /* where it stopped */
	}
	for (i = 0; i < n; i++)
		out[i] &= ~7ull;
}

/* text copies a string that an object refers to. */
static void text(struct found *f, uint64_t at)
{
	struct { uint64_t table; uint32_t length; uint8_t chars[TEXT]; } s;
	uint64_t got = in_heap(f->h, at) ? sw_checked(&s, at, sizeof s) : 0, size;
	if (got < 12 || s.length > TEXT / 2 || (size = 2ull * s.length) > got - 12)
		size = 0;
	if (f->n + 1 + (int)(size + 15) / 16 > SW_OBJECTS || !add(f, at | SW_OBJECT_TEXT, size))
		return;
	sw_copy(f->out + f->n, P(s.chars), size);
	f->n += (int)(size + 15) / 16;
}

/* next_of is what a chain goes on with: the word that the rule names, or the first of
 * several whose type may begin a chain. */
static uint64_t next_of(struct found *f, uint64_t rule, const uint64_t *body, uint64_t size)
{
	uint64_t from = rule & 0xffff, to = rule >> 16 & 0xffff, at[BATCH], table[BATCH];
	int n = 0, cut = 0;
	to = to < size ? to : size;
	if (to < from + 16)
		return to == from + 8 ? body[from / 8] : 0;
	for (; from + 8 <= to && n < BATCH; from += 8)
		if (in_heap(f->h, body[from / 8]))
			at[n++] = body[from / 8];
	tables(at, table, n);
	for (int i = 0; i < n; i++) {
		uint64_t r = table[i] ? rule_of(f->h, table[i]) : 0;
		if (r >> 32 & (SW_RULE_START | SW_RULE_TASK | SW_RULE_TEXT))
			return at[i];
		if (table[i] && !r && !cut)
			cut = i + 1;
	}
	if (cut)
		add(f, at[cut - 1] | SW_OBJECT_CUT, table[cut - 1]);
	return 0;
}

/* follow records the objects of a chain. */
static void follow(struct found *f, uint64_t at, uint64_t kind)
{
	uint64_t body[BODY / 8];
	for (int i = 0; i < STEPS && in_heap(f->h, at); i++, kind = SW_OBJECT_NEXT) {
		uint64_t size = sw_checked(body, at, sizeof body) & ~7ull, table = body[0] & ~7ull;
		uint64_t rule = size ? rule_of(f->h, table) : 0;
		if (size && !rule && kind == SW_OBJECT_NEXT)
			kind = SW_OBJECT_CUT;
		if (!size)
			kind = SW_OBJECT_CUT;
		if (!add(f, at | kind, size ? table : 0) || !size)
			return;
		if (rule >> 32 & SW_RULE_TEXT) {
			uint64_t first = rule & 0xffff, second = rule >> 16 & 0xffff;
			text(f, first + 8 <= size ? body[first / 8] : 0);
			text(f, second + 8 <= size ? body[second / 8] : 0);
			return;
		}
		at = rule ? next_of(f, rule, body, size) : 0;
	}
}

/* thread_object is the managed Thread of a thread, by the handle in the runtime's. */
static uint64_t thread_object(struct sw_header *h, uint64_t thread)
{
	uint64_t handle = 0, object = 0;
	if (!thread || !h->thread_handle || sw_checked(&handle, thread + h->thread_handle, 8) != 8 || sw_checked(&object, handle, 8) != 8)
		return 0;
	return object;
}

/* gather picks the words of registers and stack that may be objects, each once. */
static int gather(const struct sw_header *h, uint64_t *at, const uint64_t *words, uint64_t count, int n)
{
	for (uint64_t i = 0; i < count && n < CANDIDATES; i++) {
		int k = 0;
		if (!in_heap(h, words[i]))
			continue;
		while (k < n && at[k] != words[i])
			k++;
		if (k == n)
			at[n++] = words[i];
	}
	return n;
}

/* changing reports whether a collection moves objects. */
static int changing(const struct sw_header *h)
{
	int32_t n = 0;
	return h->heap_changes && (sw_checked(&n, h->heap_changes, sizeof n) != sizeof n || n > 0);
}

/* find writes what a thread refers to. It returns the number of entries. */
static int find(struct sw_header *h, const struct sw_slot *s, const uint64_t *regs, const uint64_t *stack, uint64_t size, void *out)
{
	uint64_t at[CANDIDATES], table[CANDIDATES];
	struct found f = {h, out, 0, 0};
	int n = gather(h, at, regs, SW_REGS, 0), boxes = 0, tasks = 0, known = 0;
	n = gather(h, at, stack, size / 8 < SCANNED ? size / 8 : SCANNED, n);
	follow(&f, thread_object(h, s->extra), SW_OBJECT_THREAD);
	for (; known < n && boxes < BOXES; known += BATCH) {
		int batch = n - known < BATCH ? n - known : BATCH;
		tables(at + known, table + known, batch);
		for (int i = known; i < known + batch && boxes < BOXES; i++)
			if (table[i] && rule_of(h, table[i]) >> 32 & SW_RULE_START) {
				follow(&f, at[i], SW_OBJECT_START);
				boxes++;
			}
	}
	n = n < known ? n : known;
	for (int i = n - 1; i >= 0 && boxes < BOXES && tasks < TASKS; i--)
		if (table[i] && rule_of(h, table[i]) >> 32 & SW_RULE_TASK) {
			follow(&f, at[i], SW_OBJECT_START);
			tasks++;
		}
	for (int i = 0; i < n; i++)
		if (table[i] && !rule_of(h, table[i]))
			novel(&f, at[i], table[i]);
	return f.n;
}

/* sw_objects writes what a thread refers to: SW_OBJECTS entries, the rest of them 0. It writes
 * nothing else if a collection moves objects meanwhile. */
void sw_objects(struct sw_header *h, const struct sw_slot *s, const uint64_t *regs, const uint64_t *stack, uint64_t size, void *out)
{
	struct entry *all = out;
	int n = changing(h) ? 0 : find(h, s, regs, stack, size, out);
	if (n && changing(h))
		n = 0;
	for (; n < SW_OBJECTS; n++)
		all[n].at = all[n].what = 0;
}
