/* Decodes the engine's stream (see report/wire). Every size is checked, and memory is bounded: a malformed
 * stream is detected and harmless. */
#include "client.h"

#include <stdlib.h>

enum { HELLO = 1, MODULE = 2, METHOD = 3, THREAD = 4, SAMPLE = 5, NOTE = 7, LAST = 8, EVENT = 10 };
enum { EVENT_COPY = 6, FRAME_EXACT = 1, MIN_FRAME = 7 };

struct named { uint64_t function; const char *name, *assembly; };
struct image { uint64_t start, end, bias; const char *path, *build_id; };
struct label { uint64_t tid; char name[256]; };
struct text { struct text *next; char bytes[]; };

/* The rest of a payload. bad stays set, and later reads return 0. */
struct cursor { const uint8_t *at, *end; int bad; };

static uint64_t number(struct cursor *c)
{
	uint64_t v = 0;
	for (int shift = 0; shift < 64 && c->at < c->end; shift += 7) {
		uint8_t b = *c->at++;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	c->bad = 1;
	c->at = c->end;
	return 0;
}

static uint8_t byte(struct cursor *c)
{
	if (c->at < c->end)
		return *c->at++;
	c->bad = 1;
	return 0;
}

/* keep copies a text, which stays valid until the stream ends. It returns "" beyond the bound or without
 * memory. */
static const char *keep(struct stream *s, struct cursor *c)
{
	uint64_t n = number(c);
	if (n > (uint64_t)(c->end - c->at)) {
		c->bad = 1;
		return "";
	}
	const uint8_t *from = c->at;
	c->at += n;
	struct text *t = n && s->text_bytes + n < MAX_TEXT ? malloc(sizeof *t + n + 1) : 0;
	if (!t)
		return "";
	s->text_bytes += n + 1;
	t->next = s->texts, s->texts = t;
	memcpy(t->bytes, from, n);
	t->bytes[n] = 0;
	return t->bytes;
}

/* line copies a text, truncated to room. */
static void line(struct cursor *c, char *out, size_t room)
{
	uint64_t n = number(c), left = (uint64_t)(c->end - c->at);
	c->bad |= n > left;
	n = n > left ? left : n;
	n = n < room - 1 ? n : room - 1;
	memcpy(out, c->at, n);
	out[n] = 0;
}

/* place returns the row of an id in a growing table, or 0 if the id is too large or memory runs out. */
static void *place(void *table, uint32_t *room, uint64_t id, size_t size)
{
	char **rows = table;
	if (id >= MAX_IDS)
		return 0;
	if (id >= *room) {
		uint32_t more = *room ? *room : 256;
		while (more <= id)
			more *= 2;
		char *new = realloc(*rows, more * size);
		if (!new)
			return 0;
		memset(new + *room * size, 0, (more - *room) * size);
		*rows = new, *room = more;
	}
	return *rows + id * size;
}

static const char *text(const char *s) { return s ? s : ""; }

/* rename_to replaces a name. An unchanged name takes no more memory. */
static void rename_to(struct stream *s, const char **name, struct cursor *c)
{
	struct cursor look = *c;
	uint64_t n = number(&look);
	if (*name && !look.bad && n <= (uint64_t)(look.end - look.at) && strlen(*name) == n && !memcmp(*name, look.at, n)) {
		look.at += n;
		*c = look;
		return;
	}
	*name = keep(s, c);
}

static void take_module(struct stream *s, struct cursor *c)
{
	struct image *m = place(&s->images, &s->image_room, number(c), sizeof *m);
	if (!m)
		return;
	m->start = number(c), m->end = number(c), m->bias = number(c);
	rename_to(s, &m->path, c);
	rename_to(s, &m->build_id, c);
}

static void take_method(struct stream *s, struct cursor *c)
{
	struct named *m = place(&s->methods, &s->method_room, number(c), sizeof *m);
	if (!m)
		return;
	m->function = number(c);
	rename_to(s, &m->name, c);
	rename_to(s, &m->assembly, c);
}

/* forget_ended removes the names of threads that have ended. */
static void forget_ended(struct stream *s)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < s->thread_count; i++)
		if (sw_lives((uint32_t)s->threads[i].tid))
			s->threads[kept++] = s->threads[i];
	s->thread_count = kept;
}

static void take_thread(struct stream *s, struct cursor *c)
{
	uint64_t tid = number(c);
	uint32_t i = 0;
	if (!s->threads && !(s->threads = calloc(MAX_THREADS, sizeof *s->threads)))
		return;
	while (i < s->thread_count && s->threads[i].tid != tid)
		i++;
	if (i == MAX_THREADS) {
		forget_ended(s);
		i = s->thread_count;
	}
	if (i == MAX_THREADS)
		return; /* the thread has no name: the table is full of live ones */
	if (i == s->thread_count)
		s->thread_count++;
	s->threads[i].tid = tid;
	line(c, s->threads[i].name, sizeof s->threads[i].name);
}

static const char *thread_name(const struct stream *s, uint64_t tid)
{
	for (uint32_t i = 0; i < s->thread_count; i++)
		if (s->threads[i].tid == tid)
			return s->threads[i].name;
	return "";
}

/* take_frame decodes one frame; prev is the ip of the one before. */
static void take_frame(struct stream *s, struct cursor *c, uint32_t i, uint64_t *prev)
{
	seedwalk_named_frame *f = s->frames + i;
	memset(f, 0, sizeof *f);
	f->frame.kind = byte(c), f->frame.trust = byte(c), f->frame.gap = byte(c);
	f->frame.exact = byte(c) & FRAME_EXACT;
	uint64_t module = number(c), method = number(c), zigzag = number(c);
	*prev += (zigzag >> 1) ^ (0 - (zigzag & 1));
	f->frame.ip = *prev;
	f->method = f->path = f->build_id = "";
	s->addresses[i] = 0;
	if (method < s->method_room) {
		f->frame.function = s->methods[method].function;
		f->method = text(s->methods[method].name);
		f->path = text(s->methods[method].assembly);
	}
	if (module && module < s->image_room) {
		const struct image *m = s->images + module;
		f->frame.module = (int32_t)module;
		f->path = text(m->path), f->build_id = text(m->build_id);
		s->addresses[i] = f->frame.ip - m->bias;
	}
	s->stack.doubtful += f->frame.kind != SEEDWALK_GAP && f->frame.trust >= SEEDWALK_TRUST_DOUBTFUL;
}

/* take_frames decodes the frames of a stack. It returns 0 if memory runs out. */
static int take_frames(struct stream *s, struct cursor *c)
{
	uint64_t n = number(c), prev = 0;
	if (n > MAX_FRAMES || n > (uint64_t)(c->end - c->at) / MIN_FRAME) {
		c->bad = 1;
		return 1;
	}
	if (n > s->frame_room) {
		void *frames = realloc(s->frames, n * sizeof *s->frames);
		s->frames = frames ? frames : s->frames;
		void *addresses = frames ? realloc(s->addresses, n * sizeof *s->addresses) : 0;
		s->addresses = addresses ? addresses : s->addresses;
		if (!addresses)
			return 0;
		s->frame_room = (uint32_t)n;
	}
	for (uint32_t i = 0; i < n; i++)
		take_frame(s, c, i, &prev);
	s->stack.count = (int32_t)n;
	s->stack.frames = s->frames, s->stack.addresses = s->addresses;
	return 1;
}

/* take_stack decodes a sample or an event. Of the events, only copies are passed on. */
static enum event take_stack(struct stream *s, struct cursor *c, int type)
{
	seedwalk_stack *k = &s->stack;
	uint64_t kind = 0;
	memset(k, 0, sizeof *k);
	k->size = sizeof *k;
	k->os_thread = number(c), k->time_ns = number(c);
	if (type == SAMPLE) {
		k->wall_ns = number(c), k->cpu_ns = number(c);
		number(c); /* the verdict on the seed */
		k->hresult = (uint32_t)number(c);
	} else {
		uint64_t words[6];
		for (int i = 0; i < 6; i++)
			words[i] = number(c);
		kind = words[0], k->tag = words[5];
		for (int i = 0; i < 2; i++) { /* name and text */
			uint64_t n = number(c), left = (uint64_t)(c->end - c->at);
			c->bad |= n > left;
			c->at += n < left ? n : left;
		}
	}
	k->gap = (int32_t)number(c);
	if (!take_frames(s, c))
		return NO_MEMORY;
	k->thread_name = thread_name(s, k->os_thread);
	return type == EVENT && kind != EVENT_COPY ? NONE : STACK;
}

static enum event take(struct stream *s, int type, struct cursor c)
{
	enum event e = NONE;
	switch (type) {
	case HELLO:
		s->greeted = 1;
		c.bad |= number(&c) > VERSION;
		break;
	case MODULE:
		take_module(s, &c);
		break;
	case METHOD:
		take_method(s, &c);
		break;
	case THREAD:
		take_thread(s, &c);
		break;
	case SAMPLE:
	case EVENT:
		e = take_stack(s, &c, type);
		break;
	case NOTE:
		line(&c, s->note, sizeof s->note);
		break;
	case LAST:
		line(&c, s->bye, sizeof s->bye);
		e = BYE;
		break;
	}
	return c.bad ? MALFORMED : e; /* unknown types are skipped */
}

enum event sw_decode(struct stream *s)
{
	for (;;) {
		struct cursor c = {s->bytes + s->from, s->bytes + s->to, 0};
		if (c.end - c.at < 2)
			return NONE;
		int type = byte(&c);
		uint64_t n = number(&c);
		if (n > MAX_PAYLOAD || !type || (c.bad && s->to - s->from > 10))
			return MALFORMED;
		if (c.bad || n > (uint64_t)(c.end - c.at))
			return NONE; /* the rest has not arrived yet */
		c.end = c.at + n;
		s->from = (size_t)(c.end - s->bytes);
		enum event e = take(s, type, c);
		if (e != NONE)
			return e;
	}
}

size_t sw_room(struct stream *s)
{
	enum { LEAST = 1 << 16 };
	if (s->from) {
		memmove(s->bytes, s->bytes + s->from, s->to - s->from);
		s->to -= s->from, s->from = 0;
	}
	if (s->room - s->to < LEAST && s->room < MAX_PAYLOAD + 2 * LEAST) {
		uint8_t *more = realloc(s->bytes, s->room * 2 + LEAST);
		if (more)
			s->bytes = more, s->room = s->room * 2 + LEAST;
	}
	return s->room - s->to;
}

void sw_stream_reset(struct stream *s)
{
	for (struct text *t = s->texts, *next; t; t = next) {
		next = t->next;
		free(t);
	}
	free(s->bytes), free(s->frames), free(s->addresses), free(s->threads), free(s->methods), free(s->images);
	memset(s, 0, sizeof *s);
}
