/* Everything that a vendor can get wrong with the sampler, against a runtime that is
 * made: an IUnknown that knows the interfaces it is told to, a few methods of
 * ICorProfilerInfo, no threads but this program's. Prints what each call answers. For
 * Linux and Windows. */
#include <stdio.h>
#include <string.h>

#include "seedwalk.h"

#ifdef _WIN32
#include <windows.h>
static uint32_t self(void) { return GetCurrentThreadId(); }
static void rest(void) { Sleep(1); }
typedef HANDLE thread;
static DWORD WINAPI life(void *f) { return ((void (*)(void))f)(), 0; }
static thread begin(void (*f)(void)) { return CreateThread(NULL, 0, life, (void *)f, 0, NULL); }
static void join(thread t) { WaitForSingleObject(t, INFINITE); }
#else
#include <pthread.h>
#include <unistd.h>
static uint32_t self(void) { return 0; }
static void rest(void) { usleep(1000); }
typedef pthread_t thread;
static void *life(void *f) { return ((void (*)(void))f)(), NULL; }
static thread begin(void (*f)(void))
{
	pthread_t t;
	return pthread_create(&t, NULL, life, (void *)f) ? 0 : t;
}
static void join(thread t) { pthread_join(t, NULL); }
#endif

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

/* ---- what is asked ---- */
static void say(const char *name, int error)
{
	char text[200];
	seedwalk_error_text(error, text, sizeof text);
	text[strcspn(text, ":,")] = 0;
	printf("%s: %d %s\n", name, error, text);
}

static void say_problem(const char *name, int error)
{
	char text[200];
	seedwalk_sampler_problem(text, sizeof text);
	text[strcspn(text, ":")] = 0;
	printf("%s: %d %s\n", name, error, text);
}

static seedwalk_sampler_options options = {.size = sizeof options, .info = &runtime};
static seedwalk_sampler_request request = {.size = sizeof request};
static seedwalk_sampler_result result = {.size = sizeof result};

static int sample(void) { return seedwalk_sampler_sample(&request, &result); }

static void opening(void)
{
	struct {
		seedwalk_sampler_options o;
		uint64_t more;
	} newer = {{.size = sizeof newer, .info = &runtime}, 1};
	seedwalk_sampler_options o = options;
	const seedwalk_stack *s;
	say("sample before open", sample());
	say("next before open", seedwalk_sampler_next(&s));
	say("close before open", seedwalk_sampler_close());
	say("copy before open", seedwalk_sampler_copy(1));
	say("forward before open", seedwalk_sampler_thread_destroyed(1) | seedwalk_sampler_module_unloading(1) | seedwalk_sampler_code_changed(1));
	say("open null", seedwalk_sampler_open(NULL));
	o.size = 8;
	say("open a short struct", seedwalk_sampler_open(&o));
	say("open a newer struct", seedwalk_sampler_open(&newer.o));
	o = options;
	o.info = NULL;
	say("open without info", seedwalk_sampler_open(&o));
	o = options;
	o.flags = 1;
	say("open with a flag of the future", seedwalk_sampler_open(&o));
	o = options;
	o.stack_bytes = (uint64_t)1 << 40;
	say("open with too much room", seedwalk_sampler_open(&o));
	version = 2;
	say("open an old runtime", seedwalk_sampler_open(&options));
	version = 3;
	say("open another", seedwalk_sampler_open(&options));
	version = 10;
	say("open", seedwalk_sampler_open(&options));
	say("open a second", seedwalk_sampler_open(&options));
	say("sample on the thread that opened", sample());
}

static int leave;

static void worker(void)
{
	seedwalk_sampler_thread_assigned(WORKER, self());
	say("sample on a managed thread", sample());
	__atomic_store_n(&leave, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&leave, __ATOMIC_SEQ_CST) != 2)
		rest();
	say("ThreadDestroyed", seedwalk_sampler_thread_destroyed(WORKER));
}

static void again(void *client, const seedwalk_stack *s)
{
	(void)client;
	if (s->thread == WORKER && s->size == sizeof *s)
		say("sample inside on_stack", sample());
}

static void requests(void)
{
	seedwalk_sampler_request q = request;
	seedwalk_sampler_result r = result;
	say("sample null", seedwalk_sampler_sample(NULL, NULL));
	q.size = 8;
	say("sample a short struct", seedwalk_sampler_sample(&q, NULL));
	q = request;
	q.flags = 1u << 31;
	say("sample with a flag of the future", seedwalk_sampler_sample(&q, NULL));
	r.size = 4;
	say("a short result", seedwalk_sampler_sample(&request, &r));
	say("next null", seedwalk_sampler_next(NULL));
	say("a name that is null", seedwalk_sampler_thread_named(WORKER, 1, NULL));
}

static void polled(void)
{
	const seedwalk_stack *s = NULL;
	int n = 0, sources = 0, error;
	while ((error = seedwalk_sampler_next(&s)) == SEEDWALK_OK && s)
		n++, sources += s->sources != NULL;
	printf("polled: %d of %d stacks, %d, %d with sources\n", n, result.stacks, error, sources);
}

static void sources(void)
{
	const seedwalk_stack *s = NULL;
	int unknown = 0, frames = 0;
	request.flags = SEEDWALK_SOURCES;
	say("sources", sample());
	while (seedwalk_sampler_next(&s) == SEEDWALK_OK && s)
		for (int i = 0; s->sources && i < s->count; i++)
			frames++, unknown += !*s->sources[i].file && s->sources[i].line == 0 && s->sources[i].il_offset == -1;
	printf("native frames have none: %d\n", frames > 0 && unknown == frames);
	request.flags = 0;
}

static void copies(void)
{
	uint64_t tags = 0;
	const seedwalk_stack *s = NULL;
	int n = 0, whole = 0, error = 0;
	for (uint64_t i = 1; i <= 65 && !error; i++)
		error = seedwalk_sampler_copy(i);
	say("copy too often", error);
	request.flags = SEEDWALK_COPIES;
	error = sample();
	while (seedwalk_sampler_next(&s) == SEEDWALK_OK && s) {
		n++, tags += s->tag, whole += s->gap == 0 && s->count > 1;
	}
	printf("copies: %d, %d stacks, %d whole, tags %d, dropped %d\n", error, n, whole, (int)tags, (int)result.dropped);
	error = sample();
	printf("again: %d, %d stacks\n", error, result.stacks);
	request.flags = 0;
}

/* On a thread as a vendor's sampler has it. */
static void sampler(void)
{
	requests();
	say_problem("no events", sample());
	mask = SEEDWALK_SAMPLER_EVENTS;
	say("nothing to sample", sample());
}

static void forwarding(void)
{
	threads = 1;
	say_problem("no ThreadCreated", sample());
	seedwalk_sampler_thread_created(WORKER);
	say_problem("no ThreadAssignedToOSThread", sample());
	thread w = begin(worker);
	while (!__atomic_load_n(&leave, __ATOMIC_SEQ_CST))
		rest();
	modules = 1;
	say_problem("no ModuleLoadFinished", sample());
	seedwalk_sampler_module_loaded(MODULE);
	say("all is forwarded", sample());
	polled();
	sources();
	request.on_stack = again;
	say("on_stack", sample());
	request.on_stack = NULL;
	threads = 0; /* the runtime has forgotten it, and nobody has told us */
	int error = 0;
	for (int i = 0; i < 300 && !error; i++)
		error = sample();
	say_problem("no ThreadDestroyed", error);
	__atomic_store_n(&leave, 2, __ATOMIC_SEQ_CST);
	join(w);
	say("it is told", sample());
	copies();
	say("close", seedwalk_sampler_close());
	say("close again", seedwalk_sampler_close());
	say("sample after close", sample());
	say("open after close", seedwalk_sampler_open(&options));
	say("copy after close", seedwalk_sampler_copy(1));
	say("forward after close", seedwalk_sampler_thread_created(1) | seedwalk_sampler_module_loaded(1) | seedwalk_sampler_thread_destroyed(1));
}

static void timer(void)
{
	sampler();
	forwarding();
}

int main(void)
{
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		methods[i] = fine;
	methods[0] = query, methods[6] = event_mask, methods[7] = fails;
	methods[36] = snapshot, methods[66] = enum_modules, methods[71] = enum_threads;
	setvbuf(stdout, NULL, _IONBF, 0);
	opening();
	join(begin(timer));
	return 0;
}
