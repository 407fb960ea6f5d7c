/* Everything that a vendor can get wrong with the sampler, against a runtime that is
 * made. Prints what each call answers. For Linux and Windows. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <string.h>

#include "seedwalk.h"

#ifdef _WIN32
#include <windows.h>
static uint32_t self(void) { return GetCurrentThreadId(); }
static uint64_t image(uint64_t ip)
{
	HMODULE m = NULL;
	GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, (LPCSTR)(uintptr_t)ip, &m);
	return (uint64_t)(uintptr_t)m;
}
static void rest(void) { Sleep(1); }
typedef HANDLE thread;
static DWORD WINAPI life(void *f) { return ((void (*)(void))f)(), 0; }
static thread begin(void (*f)(void)) { return CreateThread(NULL, 0, life, (void *)f, 0, NULL); }
static void join(thread t) { WaitForSingleObject(t, INFINITE); }
#else
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>
static uint32_t self(void) { return 0; }
static uint64_t image(uint64_t ip)
{
	Dl_info d;
	return dladdr((void *)ip, &d) ? (uint64_t)d.dli_fbase : 0;
}
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

#include "made.h"

/* ---- what is asked ---- */
static void say(const char *name, int error)
{
	char text[200];
	seedwalk_error_text(error, text, sizeof text);
	text[strcspn(text, ":,")] = 0;
	printf("%s: %d %s\n", name, error, text);
}

/* problem tells whether the sampler's text has such words. */
static int problem(const char *words)
{
	char text[200];
	seedwalk_sampler_problem(text, sizeof text);
	return strstr(text, words) != NULL;
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

/* Of frames in modules the address is that of the image that the system knows there. */
static int addresses(const seedwalk_stack *s)
{
	int right = 0, wrong = 0;
	for (int i = 0; i < s->count; i++) {
		const seedwalk_frame *f = &s->frames[i].frame;
		int same = s->addresses[i] == (f->module ? f->ip - image(f->ip) : 0);
		right += same && f->module, wrong += !same;
	}
	return right > 0 && !wrong;
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
	int n = 0, whole = 0, error = 0, placed = 0;
	for (uint64_t i = 1; i <= 65 && !error; i++)
		error = seedwalk_sampler_copy(i);
	say("copy too often", error);
	request.flags = SEEDWALK_COPIES;
	error = sample();
	while (seedwalk_sampler_next(&s) == SEEDWALK_OK && s) {
		n++, tags += s->tag, whole += s->gap == SEEDWALK_GAP_NONE && s->count > 1;
		placed += addresses(s);
	}
	printf("copies: %d, %d stacks, %d whole, %d with addresses, tags %d, dropped %d\n", error, n, whole, placed, (int)tags, (int)result.dropped);
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
	say_problem("no callback of threads", sample());
	modules = 1;
	say_problem("no callback", sample());
	seedwalk_sampler_thread_created(WORKER);
	say_problem("none but ThreadCreated", sample());
	thread w = begin(worker);
	while (!__atomic_load_n(&leave, __ATOMIC_SEQ_CST))
		rest();
	say_problem("no ModuleLoadFinished", sample());
	seedwalk_sampler_module_loaded(MODULE);
	say("all is forwarded", sample());
	polled();
	sources();
	request.on_stack = again;
	say("on_stack", sample());
	request.on_stack = NULL;
	threads = 0; /* the runtime has forgotten it without a callback */
	int error = sample();
	say("ThreadDestroyed is late", error);
	for (int i = 0; i < 12000 && !error && !problem("has not come"); i++) {
		rest();
		error = sample();
	}
	say_problem("no ThreadDestroyed for long", error);
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
	make_runtime();
	setvbuf(stdout, NULL, _IONBF, 0);
	opening();
	join(begin(timer));
	return 0;
}
