/* A runtime that is made: an IUnknown that knows the interfaces it is told to, a few
 * methods of ICorProfilerInfo, no threads but the program's. */
#include <stdint.h>
#include <stddef.h>
#include <string.h>

struct guid {
	uint32_t a;
	uint16_t b, c;
	uint8_t d[8];
};

static const struct {
	int version;
	struct guid id;
} infos[] = {
	{3, {0xb555ed4f, 0x452a, 0x4e54, {0x8b, 0x39, 0xb5, 0x36, 0x0b, 0xad, 0x32, 0xa0}}},
	{8, {0xc5ac80a6, 0x782e, 0x4716, {0x80, 0x44, 0x39, 0x59, 0x8c, 0x60, 0xcf, 0xbf}}},
	{10, {0x2f1b5152, 0xc869, 0x40c9, {0xaa, 0x5f, 0x3a, 0xbe, 0x02, 0x6b, 0xd7, 0x20}}},
};

/* ---- the runtime that is made ---- */
enum { WORKER = 5, MODULE = 7 };
static int version, threads, modules;
static uint32_t mask;
static void *methods[128], **runtime = methods;

static uint32_t query(void *unused, const struct guid *id, void **out)
{
	(void)unused;
	*out = NULL;
	for (size_t i = 0; i < sizeof infos / sizeof *infos; i++)
		if (version >= infos[i].version && memcmp(id, &infos[i].id, sizeof *id) == 0)
			*out = &runtime;
	return *out ? 0 : 0x80004002u;
}

static uint32_t fine(void) { return 0; }
static uint32_t fails(void) { return 0x80004005u; }

static uint32_t event_mask(void *unused, uint32_t *out)
{
	(void)unused;
	return *out = mask, 0;
}

static uint64_t what;
static uint32_t next(void *unused, uint32_t room, uint64_t *out, uint32_t *n)
{
	(void)unused;
	*n = what && room;
	*out = what;
	return 0;
}

static void *enumeration_methods[] = {fails, fine, fine, fails, fails, fails, fails, next}, **enumeration = enumeration_methods;

static uint32_t enum_threads(void *unused, void **out)
{
	(void)unused;
	what = threads ? WORKER : 0;
	return *out = &enumeration, 0;
}

static uint32_t enum_modules(void *unused, void **out)
{
	(void)unused;
	what = modules ? MODULE : 0;
	return *out = &enumeration, 0;
}

typedef uint32_t (*frame_fn)(uint64_t, uint64_t, uint64_t, uint32_t, uint8_t *, void *);

static uint32_t snapshot(void *unused, uint64_t id, frame_fn f, uint32_t flags, void *client, uint8_t *context, uint32_t size)
{
	(void)unused, (void)id, (void)flags, (void)context, (void)size;
	f(0x77, 1, 0, 0, NULL, client);
	return 0x80004005u;
}

static void make_runtime(void)
{
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		methods[i] = fine;
	methods[0] = query, methods[6] = event_mask, methods[7] = fails;
	methods[36] = snapshot, methods[66] = enum_modules, methods[71] = enum_threads;
}
