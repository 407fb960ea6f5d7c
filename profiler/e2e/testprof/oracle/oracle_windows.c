//go:build oracle

/* A second walker for a test, never in the product. RtlVirtualUnwind walks the same
 * stacks as our own walker, in the same window, from the same registers.
 *
 * The window forbids calls of RtlLookupFunctionEntry. So the entry of an address
 * comes from a search of the image's exception directory. An address outside all
 * images ends a walk: it is managed code, or belongs to no code at all.
 * RtlVirtualUnwind does not check its input. So before each step, every address
 * that it may read is compared with the bounds of the stack.
 *
 * Source: "x64 exception handling" (UNWIND_INFO). */
#include "platform.h"
#include "oracle.h"

#include <string.h>
#include <windows.h>

struct image {
	uint64_t base, end;
	const RUNTIME_FUNCTION *entries; /* sorted */
	uint32_t count;
};

static struct image images[SW_MODULES];
static int image_count;
static struct sw_oracle_walk walks[SW_ORACLE_WALKS];
static int walk_count;
static struct { uint64_t low, high; } stack;

/* Takes over the native images, sorted by address, while nothing is suspended. */
void sw_oracle_images(const uint64_t *bases, int n)
{
	image_count = 0;
	for (int i = 0; i < n && i < SW_MODULES; i++) {
		const uint8_t *base = (const uint8_t *)bases[i];
		const IMAGE_NT_HEADERS *nt = (const void *)(base + ((const IMAGE_DOS_HEADER *)base)->e_lfanew);
		const IMAGE_DATA_DIRECTORY *d = &nt->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_EXCEPTION];
		images[image_count++] = (struct image){bases[i], bases[i] + nt->OptionalHeader.SizeOfImage,
			(const void *)(base + d->VirtualAddress), d->Size / sizeof(RUNTIME_FUNCTION)};
	}
}

static const struct image *image_of(uint64_t ip)
{
	int low = 0, high = image_count;
	while (low < high) {
		int mid = (low + high) / 2;
		if (ip >= images[mid].end)
			low = mid + 1;
		else
			high = mid;
	}
	return low < image_count && ip >= images[low].base ? &images[low] : NULL;
}

static const RUNTIME_FUNCTION *entry_of(const struct image *m, uint64_t ip)
{
	uint32_t rva = (uint32_t)(ip - m->base), low = 0, high = m->count;
	while (low < high) {
		uint32_t mid = (low + high) / 2;
		if (rva >= m->entries[mid].EndAddress)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == m->count || rva < m->entries[low].BeginAddress)
		return NULL;
	const RUNTIME_FUNCTION *f = &m->entries[low];
	return f->UnwindData & 1 ? (const void *)(m->base + (f->UnwindData & ~1u)) : f;
}

struct info {
	uint8_t version_flags, prolog, count, frame;
	uint8_t codes[][2];
};

enum { PUSH_NONVOL, ALLOC_LARGE, ALLOC_SMALL, SET_FPREG, SAVE_NONVOL, SAVE_NONVOL_FAR, EPILOG, SPARE, SAVE_XMM128, SAVE_XMM128_FAR, PUSH_MACHFRAME };
enum { CHAIN = 4 << 3, MAX_CHAIN = 32 };

static uint32_t word(const uint8_t *p, int bytes)
{
	uint32_t v = 0;
	memcpy(&v, p, (size_t)bytes);
	return v;
}

/* How far above the frame's base undoing one UNWIND_INFO reads, at most. */
static uint64_t reach_of(const struct info *u, uint64_t *pushed)
{
	uint64_t saved = 0;
	for (int i = 0; i < u->count;) {
		int op = u->codes[i][1] & 15, arg = u->codes[i][1] >> 4, slots = 1;
		const uint8_t *operand = u->codes[i + 1];
		uint64_t at = 0;
		switch (op) {
		case PUSH_NONVOL: *pushed += 8; break;
		case ALLOC_SMALL: *pushed += 8u * (unsigned)arg + 8; break;
		case ALLOC_LARGE:
			slots = arg ? 3 : 2;
			*pushed += arg ? word(operand, 4) : 8 * (uint64_t)word(operand, 2);
			break;
		case SAVE_NONVOL: slots = 2; at = 8 * (uint64_t)word(operand, 2) + 8; break;
		case SAVE_XMM128: slots = 2; at = 16 * (uint64_t)word(operand, 2) + 16; break;
		case SAVE_NONVOL_FAR: case SAVE_XMM128_FAR: slots = 3; at = (uint64_t)word(operand, 4) + 16; break;
		case EPILOG: case SPARE: slots = (u->version_flags & 7) == 1 ? 2 : 1; break;
		case PUSH_MACHFRAME: *pushed += 48; break;
		}
		saved = at > saved ? at : saved;
		i += slots;
	}
	return saved;
}

/* Whether all that a step out of f reads lies in the stack. */
static int safe(const struct image *m, const RUNTIME_FUNCTION *f, const CONTEXT *c)
{
	const struct info *u = (const void *)(m->base + f->UnwindData);
	uint64_t low = c->Rsp, high = c->Rsp, pushed = 0, saved = 0;
	if (u->frame & 15) {
		uint64_t base = (&c->Rax)[u->frame & 15] - 16 * (u->frame >> 4);
		low = base < low ? base : low;
		high = base > high ? base : high;
	}
	for (int link = 0; link < MAX_CHAIN; link++) {
		uint64_t more = reach_of(u, &pushed);
		saved = more > saved ? more : saved;
		if (!(u->version_flags & CHAIN))
			break;
		const RUNTIME_FUNCTION *parent = (const void *)u->codes[(u->count + 1) & ~1];
		u = (const void *)(m->base + (parent->UnwindData & ~1u));
	}
	pushed += 8; /* the return address */
	uint64_t most = pushed > saved ? pushed : saved;
	return low >= stack.low && high < stack.high && most <= stack.high - high;
}

/* The step of every Windows unwinder. 0: it cannot be made. */
static int step(CONTEXT *c, int checked, uint64_t *stop)
{
	const struct image *m = image_of(c->Rip);
	if (!m)
		return *stop = c->Rip ? SW_ORACLE_NO_IMAGE : SW_ORACLE_END, 0;
	const RUNTIME_FUNCTION *f = entry_of(m, c->Rip);
	if (checked && (f ? !safe(m, f, c) : c->Rsp < stack.low || c->Rsp >= stack.high - 8))
		return *stop = SW_ORACLE_BOUNDS, 0;
	if (!f) {
		c->Rip = *(const uint64_t *)c->Rsp;
		c->Rsp += 8;
		return 1;
	}
	void *data = NULL;
	uint64_t frame;
	RtlVirtualUnwind(UNW_FLAG_NHANDLER, m->base, c->Rip, (RUNTIME_FUNCTION *)f, c, &data, &frame, NULL);
	return 1;
}

static void note(struct sw_oracle_walk *w, const CONTEXT *c)
{
	struct sw_oracle_frame *f = &w->frames[w->count++];
	*f = (struct sw_oracle_frame){{c->Rip, c->Rsp, c->Rbx, c->Rbp, c->Rsi, c->Rdi, c->R12, c->R13, c->R14, c->R15}};
}

/* Which words of the stack are no longer what we have copied. */
static void compare(struct sw_oracle_walk *w, const struct sw_slot *s)
{
	const uint8_t *now = (const uint8_t *)(uintptr_t)s->stack_addr;
	if (memcmp(now, s->stack, s->stack_len) == 0)
		return;
	for (uint64_t at = 0; at + 8 <= s->stack_len && w->moves < SW_ORACLE_MOVES; at += 8) {
		if (memcmp(now + at, s->stack + at, 8) == 0)
			continue;
		memcpy(&w->moved[w->moves].was, s->stack + at, 8);
		memcpy(&w->moved[w->moves].is, now + at, 8);
		w->moves++;
	}
}

/* Walks with all checks and keeps what comes of it; NULL if it cannot. */
static struct sw_oracle_walk *walk(const CONTEXT *from, uint64_t thread, uint64_t block)
{
	static CONTEXT c;
	const struct sw_slot *s = sw_slot_at(0);
	if (walk_count == SW_ORACLE_WALKS || s->foreign)
		return NULL;
	struct sw_oracle_walk *w = &walks[walk_count++];
	uint64_t begin = sw_now_ns();
	memset(w, 0, offsetof(struct sw_oracle_walk, frames));
	w->thread = thread;
	w->block = block;
	stack.low = s->stack_addr;
	stack.high = s->stack_high;
	memcpy(&c, from, sizeof c);
	note(w, &c);
	while (step(&c, 1, &w->stop)) {
		if (c.Rsp <= w->frames[w->count - 1].reg[1]) {
			w->stop = SW_ORACLE_NO_PROGRESS;
			break;
		}
		if (w->count == SW_ORACLE_FRAMES) {
			w->stop = SW_ORACLE_FULL;
			break;
		}
		note(w, &c);
	}
	w->first = sw_now_ns() - begin;
	compare(w, s);
	memcpy(w->xmm, &c.Xmm6, sizeof w->xmm);
	return w;
}

/* The same walks by RtlVirtualUnwind alone, now that they are known to be safe:
 * what a profiler would do that has nothing else. */
static void walk_again(const CONTEXT *from, struct sw_oracle_walk *w)
{
	static CONTEXT c;
	uint64_t begin = sw_now_ns(), unused;
	for (int n = 0; n < SW_ORACLE_AGAIN; n++) {
		memcpy(&c, from, sizeof c);
		for (uint64_t i = 1; i < w->count; i++)
			step(&c, 0, &unused);
	}
	w->again = (sw_now_ns() - begin) / SW_ORACLE_AGAIN;
}

void sw_oracle_reset(void) { walk_count = 0; }

/* The block on top, from the thread's own registers. */
struct sw_oracle_walk *sw_oracle_top(void)
{
	const struct sw_slot *s = sw_slot_at(0);
	struct sw_oracle_walk *w = walk((const CONTEXT *)s->context, s->thread_id, 0);
	if (w)
		walk_again((const CONTEXT *)s->context, w);
	return w;
}

/* The blocks below, from the registers the CLR has reported. */
void sw_oracle_blocks(void)
{
	static CONTEXT c;
	const struct sw_slot *s = sw_slot_at(0);
	for (uint64_t i = 0; i < s->frame_count; i++) {
		const struct sw_frame *f = &s->frames[i];
		if (f->function)
			continue;
		c.Rip = f->ip, c.Rsp = f->sp, c.Rbp = f->fp, c.Rbx = f->saved[0];
		memcpy(&c.R12, &f->saved[1], 4 * sizeof c.R12);
		c.Rsi = f->saved[5], c.Rdi = f->saved[6];
		walk(&c, s->thread_id, i + 1);
	}
}

/* What the system takes to find the entries that the search of ours has found:
 * asked after the thread runs again. */
void sw_oracle_lookup(void)
{
	uint64_t base, begin = sw_now_ns();
	for (uint64_t k = 0; walk_count > 0 && k + 1 < walks[0].count; k++)
		RtlLookupFunctionEntry(walks[0].frames[k].reg[0], &base, NULL);
	walks[0].lookup = sw_now_ns() - begin;
}

struct sw_oracle_walk *sw_oracle_walks(int *n)
{
	*n = walk_count;
	return walks;
}
