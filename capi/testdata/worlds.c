/* The C library as the sampler of the simulator's worlds: capi/worlds_test.go asks
 * by stdin, this answers by stdout. Modules are added as a vendor does who has
 * another process's stacks; where their stubs are the library finds by itself. Words
 * are of 8 bytes, structures as the header has them. */
#include "seedwalk.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#endif

enum { KIT = 1, WALK, MERGE };
enum { CONTEXT = 1232, STACK = 1 << 20, ROWS = 4096, FRAMES = 4096, METHODS = 256, KITS = 60 };

struct method {
	uint64_t start, end, id;
};

static struct kit {
	seedwalk_handle handle;
	uint64_t count;
	struct method methods[METHODS];
} kits[KITS];
static uint64_t opened;

static void take(void *to, size_t n)
{
	if (n != 0 && fread(to, 1, n, stdin) != n)
		exit(0); /* no more worlds */
}

static uint64_t word(void)
{
	uint64_t v;
	take(&v, sizeof v);
	return v;
}

static void give(const void *from, size_t n) { fwrite(from, 1, n, stdout); }

static void give_word(uint64_t v) { give(&v, sizeof v); }

/* GetFunctionFromIP */
static uint64_t from_ip(void *client, uint64_t ip)
{
	const struct kit *k = (const struct kit *)client;
	for (uint64_t i = 0; i < k->count; i++)
		if (ip >= k->methods[i].start && ip < k->methods[i].end)
			return k->methods[i].id;
	return 0;
}

static void add_module(struct kit *k, int32_t id, int *err)
{
	uint64_t base = word(), length = word();
	uint8_t *image = (uint8_t *)malloc(length);
	take(image, length);
	if (*err == SEEDWALK_OK)
		*err = seedwalk_add_pe_mapped(k->handle, id, "module", base, image, length);
	free(image);
}

static void kit(void)
{
	struct kit *k = &kits[opened % KITS];
	seedwalk_options o = {sizeof o, SEEDWALK_AMD64, SEEDWALK_OTHER_PROCESS, 0};
	int err = seedwalk_open(&o, &k->handle);
	uint64_t modules = word();
	for (uint64_t i = 1; i <= modules; i++)
		add_module(k, (int32_t)i, &err);
	uint64_t start = word(), end = word();
	k->count = word();
	if (k->count > METHODS)
		exit(1);
	take(k->methods, (size_t)k->count * sizeof *k->methods);
	if (err == SEEDWALK_OK)
		err = seedwalk_add_managed(k->handle, start, end);
	if (err == SEEDWALK_OK)
		err = seedwalk_commit(k->handle);
	give_word((uint64_t)(int64_t)err);
	give_word(opened++ % KITS);
}

static uint8_t context[CONTEXT], seed[CONTEXT], stack[STACK];
static seedwalk_snapshot_frame rows[ROWS];
static seedwalk_frame frames[FRAMES];
static seedwalk_result result;

/* Reads a sample; returns its kit. */
static struct kit *sampled(seedwalk_sample *s)
{
	struct kit *k = &kits[word() % KITS];
	memset(s, 0, sizeof *s);
	s->size = sizeof *s;
	s->layout = SEEDWALK_CONTEXT_WIN32;
	s->context = context, s->context_size = sizeof context;
	s->thread = word(), s->low = word(), s->high = word(), s->truncated = (uint32_t)word();
	s->address = word(), s->length = word();
	if (s->length > sizeof stack)
		exit(1);
	s->stack = stack;
	s->from_ip = from_ip, s->client = k;
	take(context, sizeof context);
	take(stack, (size_t)s->length);
	memset(&result, 0, sizeof result);
	result.size = sizeof result;
	return k;
}

static void walk(void)
{
	seedwalk_sample s;
	struct kit *k = sampled(&s);
	memcpy(seed, context, sizeof seed);
	seedwalk_walk_request r = {sizeof r, FRAMES, &s, frames, seed, sizeof seed};
	give_word((uint64_t)(int64_t)seedwalk_walk(k->handle, &r, &result));
	give(&result, sizeof result);
	give(seed, sizeof seed);
}

static void merge(void)
{
	seedwalk_sample s;
	struct kit *k = sampled(&s);
	seedwalk_merge_request r = {sizeof r, FRAMES, &s, frames, rows, 0, 0};
	r.hresult = (uint32_t)word();
	r.count = (int32_t)word();
	if (r.count > ROWS)
		exit(1);
	take(rows, (size_t)r.count * sizeof *rows);
	give_word((uint64_t)(int64_t)seedwalk_merge(k->handle, &r, &result));
	give(&result, sizeof result);
	give(frames, (size_t)result.frames * sizeof *frames);
}

int main(void)
{
#ifdef _WIN32
	_setmode(_fileno(stdin), _O_BINARY);
	_setmode(_fileno(stdout), _O_BINARY);
#endif
	for (;;) {
		switch (word()) {
		case KIT:
			kit();
			break;
		case WALK:
			walk();
			break;
		case MERGE:
			merge();
			break;
		default:
			return 1;
		}
		fflush(stdout);
	}
}
