/* Reads chains of objects in the managed heap, from references on a thread's stack, at the moment of the sample.
 * The tool's rules say how each type is followed. All chains advance together: one call reads the next object of
 * each. Every read is checked, and the number of reads is bounded. A chain ends at a type without a rule. That
 * type is recorded, so that the tool can add a rule. */
#include "local.h"

enum {
	CANDIDATES = 64,  /* words of a stack that are looked up */
	SCANNED = 4096,   /* words of a stack that are searched for a frame with a rule */
	FRAMES = 2,       /* frames whose words are looked up: the first may be left over from an ended call */
	BATCH = 32,       /* words of one object that are looked up */
	BOXES = 4,        /* chains of one sample that begin with an async method, from the leaf on */
	TASKS = 2,        /* chains that begin with a task, from the root on: the running task is there */
	CHAINS = 1 + BOXES + TASKS, /* the first is that of the thread */
	STEPS = 40,       /* objects of one chain */
	NOVEL = 16,       /* types without a rule that are recorded */
	BODY = 256,       /* bytes that are read of an object */
	TEXT = 64,        /* bytes of a string that are copied */
	PROBES = 8,       /* places of the table where a type is looked for */
	FAULTS = 8,       /* pieces of one read that may be unreadable */
};
_Static_assert(CHAINS <= (int)SW_OBJECT_CHAINS, "chains");

struct entry { uint64_t at, what; };

/* chain holds the address of the next object of a chain, 0 at its end, and the kind of its entry. Kind 0: the
 * object is the handle of the thread's object. */
struct chain { uint64_t at, kind; };

/* found collects the entries of one sample. */
struct found {
	struct sw_header *h;
	struct entry *out;
	int n, novel;
	struct chain chains[CHAINS];
};

/* pieces copies n pieces of memory to consecutive places. If a piece is not readable to its end, its size becomes
 * that of its readable part, and the rest of its place is 0. process_vm_writev to the own process reads the
 * pieces with checks while it copies. process_vm_readv would be slower: it looks up the pages of each piece. */
static void pieces(struct vec *from, int n, char *to)
{
	const long pid = sys3(NR_getpid, 0, 0, 0);
	for (int i = 0, faults = 0; i < n; i++) {
		struct vec out = {P(to), 0};
		for (int k = i; k < n; k++)
			out.size += from[k].size;
		long r = !out.size || faults > FAULTS ? 0 : sys6(NR_process_vm_writev, pid, P(from + i), n - i, P(&out), 1, 0);
		if (r == -EPERM || r == -ENOSYS)
			r = (long)sw_checked(to, from[i].base, from[i].size);
		uint64_t got = r > 0 ? (uint64_t)r : 0;
		for (; got > from[i].size; i++) {
			got -= from[i].size;
			to += from[i].size;
		}
		faults += got < from[i].size;
		for (uint64_t k = got; k < from[i].size; k++)
			to[k] = 0;
		to += from[i].size;
		from[i].size = got;
	}
}

static struct sw_rule *rules(struct sw_header *h)
{
	return (struct sw_rule *)((char *)h + SW_BEFORE_RING) - SW_RULES;
}

/* rule_of returns the rule of a type or a return address, 0 if it has none. */
static uint64_t rule_of(struct sw_header *h, uint64_t table)
{
	uint64_t i = (table >> 3) * 0x9e3779b97f4a7c15ull >> 50;
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

/* texts adds the two strings to which an object refers. A string that is unreadable or too long is empty. */
static void texts(struct found *f, uint64_t rule, const uint64_t *body, uint64_t size)
{
	struct { uint64_t table; uint32_t length; uint8_t chars[TEXT + 4]; } s[2];
	struct vec from[2];
	for (int i = 0; i < 2; i++, rule >>= 16) {
		uint64_t field = rule & 0xffff, at = field + 8 <= size ? body[field / 8] : 0;
		from[i] = (struct vec){at, in_heap(f->h, at) ? sizeof s[i] : 0};
	}
	pieces(from, 2, (char *)s);
	for (int i = 0; i < 2; i++) {
		uint64_t n = 2ull * s[i].length;
		if (from[i].size < 12 || n > TEXT || n > from[i].size - 12)
			n = 0;
		if (f->n + 1 + (int)(n + 15) / 16 > SW_OBJECTS || !add(f, SW_OBJECT_TEXT, n))
			return;
		sw_copy(f->out + f->n, P(s[i].chars), n);
		f->n += (int)(n + 15) / 16;
	}
}

/* next_of returns the next object of a chain by its rule (struct sw_rule), or 0 at its end. */
static uint64_t next_of(struct found *f, uint64_t rule, const uint64_t *body, uint64_t size, int chain)
{
	uint64_t from = rule & 0xffff, to = rule >> 16 & 0xffff, table[BATCH];
	struct vec at[BATCH];
	int n = 0, cut = 0;
	to = to < size ? to : size;
	if (to < from + 16)
		return to == from + 8 ? body[from / 8] : 0;
	for (; from + 8 <= to && n < BATCH; from += 8)
		if (in_heap(f->h, body[from / 8]))
			at[n++] = (struct vec){body[from / 8], 8};
	pieces(at, n, (char *)table);
	for (int i = 0; i < n; i++) {
		uint64_t t = table[i] & ~7ull, r = t ? rule_of(f->h, t) : 0;
		if (r >> 32 & (SW_RULE_START | SW_RULE_TASK | SW_RULE_TEXT))
			return at[i].base;
		if (t && !r && !cut)
			cut = i + 1;
	}
	if (cut)
		add(f, at[cut - 1].base | SW_OBJECT_CUT, (table[cut - 1] & ~7ull) | (uint64_t)chain);
	return 0;
}

/* step records the next object of a chain, and finds the one after it. */
static void step(struct found *f, int chain, const uint64_t *body, uint64_t size)
{
	struct chain *c = f->chains + chain;
	uint64_t at = c->at, kind = c->kind, table = body[0] & ~7ull, rule;
	*c = (struct chain){0, SW_OBJECT_NEXT};
	if (!kind) { /* the handle of the thread's object */
		*c = (struct chain){body[0], SW_OBJECT_THREAD};
		return;
	}
	rule = table ? rule_of(f->h, table) : 0;
	if (!table || (!rule && kind == SW_OBJECT_NEXT))
		kind = SW_OBJECT_CUT;
	if (!add(f, at | kind, table | (uint64_t)chain) || !rule)
		return;
	if (rule >> 32 & SW_RULE_TEXT)
		texts(f, rule, body, size);
	else
		c->at = next_of(f, rule, body, size, chain);
}

/* follow records the objects of all chains. */
static void follow(struct found *f)
{
	uint64_t body[CHAINS][BODY / 8];
	struct vec from[CHAINS];
	int chain[CHAINS], n = 1;
	for (int i = 0; i < STEPS && n; i++) {
		n = 0;
		for (int k = 0; k < CHAINS; k++)
			if (f->chains[k].at && (!f->chains[k].kind || in_heap(f->h, f->chains[k].at))) {
				from[n] = (struct vec){f->chains[k].at, BODY};
				chain[n++] = k;
			}
		pieces(from, n, (char *)body);
		for (int k = 0; k < n; k++)
			step(f, chain[k], body[k], from[k].size & ~7ull);
	}
}

/* gather picks the words that may be objects, each once. */
static int gather(const struct sw_header *h, struct vec *at, const uint64_t *words, uint64_t count, int n)
{
	for (uint64_t i = 0; i < count && n < CANDIDATES; i++) {
		int k = 0;
		if (!in_heap(h, words[i]))
			continue;
		while (k < n && at[k].base != words[i])
			k++;
		if (k == n)
			at[n++] = (struct vec){words[i], 8};
	}
	return n;
}

/* candidates picks words that may be objects from the first FRAMES frames with a rule, and from the registers if
 * there is such a frame. */
static int candidates(struct sw_header *h, struct vec *at, const uint64_t *regs, const uint64_t *stack, uint64_t count)
{
	int n = 0, frames = 0;
	for (uint64_t i = 0, done = 0; i < count && i < SCANNED && frames < FRAMES; i++) {
		uint64_t rule = stack[i] - h->code <= h->code_size ? rule_of(h, stack[i]) : 0, from = rule & 0xffff, to = i + (rule >> 16 & 0xffff);
		if (!(rule >> 32 & SW_RULE_FRAME))
			continue;
		if (!frames++)
			n = gather(h, at, regs, SW_REGS, 0);
		from = i - done < from ? done : i - from;
		done = to < count ? to : count;
		n = gather(h, at, stack + from, done - from, n);
		i = done > i ? done - 1 : i;
	}
	return n;
}

/* changing reports whether a collection may be moving objects. */
static int changing(const struct sw_header *h)
{
	int32_t n = 0;
	return h->heap_changes && (sw_checked(&n, h->heap_changes, sizeof n) != sizeof n || n > 0);
}

/* begin begins a chain with each candidate whose type allows it. */
static void begin(struct found *f, const struct vec *at, const uint64_t *table, int n)
{
	int chains = 1, tasks = 0;
	for (int i = 0; i < n && chains <= BOXES; i++)
		if (rule_of(f->h, table[i]) >> 32 & SW_RULE_START)
			f->chains[chains++] = (struct chain){at[i].base, SW_OBJECT_START};
	for (int i = n - 1; i >= 0 && tasks < TASKS; i--)
		if (rule_of(f->h, table[i]) >> 32 & SW_RULE_TASK) {
			f->chains[chains++] = (struct chain){at[i].base, SW_OBJECT_START};
			tasks++;
		}
}

/* find writes the entries of a sample, and returns their number. */
static int find(struct sw_header *h, const struct sw_slot *s, const uint64_t *regs, const uint64_t *stack, uint64_t size, void *out)
{
	struct vec at[CANDIDATES + 1];
	uint64_t table[CANDIDATES + 1];
	struct found f = {h, out, 0, 0, {{0, 0}}};
	int n = candidates(h, at, regs, stack, size / 8);
	at[n] = (struct vec){s->extra + h->thread_handle, s->extra && h->thread_handle ? 8 : 0};
	pieces(at, n + 1, (char *)table);
	f.chains[0].at = at[n].size == 8 ? table[n] : 0;
	for (int i = 0; i < n; i++)
		table[i] &= ~7ull;
	begin(&f, at, table, n);
	follow(&f);
	for (int i = 0; i < n; i++)
		if (table[i] && !rule_of(h, table[i]))
			novel(&f, at[i].base, table[i]);
	return f.n;
}

/* sw_objects writes the SW_OBJECTS entries of a sample. Unused entries are 0. */
void sw_objects(struct sw_header *h, const struct sw_slot *s, const uint64_t *regs, const uint64_t *stack, uint64_t size, void *out)
{
	struct entry *all = out;
	int moved = changing(h), n = moved ? 0 : find(h, s, regs, stack, size, out);
	if (moved || (n && changing(h))) {
		n = 1;
		all[0] = (struct entry){SW_OBJECT_MOVED, 0};
	}
	for (; n < SW_OBJECTS; n++)
		all[n].at = all[n].what = 0;
}
