// A test's profiler: in callbacks each thread copies its own stack, the timer's thread has
// the copies walked. Writes to COPIES_OUT how many stacks of each callback there were, and
// to COPIES_THROWN a line for each exception: its managed methods, leaf first; to
// COPIES_SOURCES one for each stack, with FILE:LINE+IL behind each managed method. With
// COPIES_NOW each thread walks its stack at once too, and the two must be the same.
// COPIES_KEEP is a file for the copies, of exceptions only, if the client library has no helper.
// COPIES_RATE copies at every allocation, and limits the copies to that many per second.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "now.h"
#include "seedwalk_client.h"

extern "C" int seedwalk_client_configure(const seedwalk_client_options *) __attribute__((weak));

namespace {

using Result = uint32_t;
constexpr Result ok = 0, fail = 0x80004005;
// COR_PRF_MONITOR_EXCEPTIONS, MONITOR_CLASS_LOADS, MONITOR_JIT_COMPILATION, MONITOR_ and ENABLE_OBJECT_ALLOCATED
constexpr uint32_t mask = SEEDWALK_SAMPLER_EVENTS | 0x40 | 0x2 | 0x20 | 0x800100;

enum Kind { Allocation = 1, Exception, ClassLoad, Jit, Kinds };
const char *const names[] = {"", "allocation", "exception", "class-load", "jit"};
std::atomic<bool> stopping{false}, stopped{false};
std::atomic<long> allocations{0}, loads{0};
long whole[Kinds], all[Kinds], dropped, natives, named;
FILE *thrown, *sourced;

// Copies at a rate. Copies of the first two seconds have kind 0 and are not counted: a helper process starts.
using Clock = std::chrono::steady_clock;
constexpr double starting = 2;
long rate;
std::atomic<double> length{0}; // seconds measured
std::atomic<long> paced{0}, asked{0}, full{0}, refused{0};

// A stack that was walked at once, until its copy is walked: the slot's number is in the tag.
struct Walked {
	std::atomic<bool> used{false};
	seedwalk_frame *frames = nullptr;
	int count = 0, gap = 0, error = 0;
} walked[96];
bool both, kept;
void *corinfo;
long same[Kinds], other[Kinds], gaps;
std::atomic<long> busy{0}, nanos{0};

__attribute__((noinline)) void take(int kind)
{
	if (kept && kind != Exception)
		return;
	if (!both || !now::ready)
		return void(seedwalk_sampler_copy(kind));
	for (Walked &w : walked) {
		bool free = false;
		if (!w.used.compare_exchange_strong(free, true))
			continue;
		seedwalk_result r{};
		auto begin = std::chrono::steady_clock::now();
		w.error = now::walk(w.frames, now::room, &r);
		nanos += (std::chrono::steady_clock::now() - begin).count();
		w.count = r.frames, w.gap = r.gap;
		if (w.error || seedwalk_sampler_copy(kind | (&w - walked + 1) << 8) != SEEDWALK_OK)
			busy += w.error == SEEDWALK_BUSY, w.used = false;
		return;
	}
}

void pace()
{
	static const Clock::time_point begin = Clock::now();
	auto passed = [] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
	double t = passed();
	for (long n = paced++; static_cast<double>(n) > static_cast<double>(rate) * t; t = passed())
		usleep(500);
	if (t < starting)
		return void(seedwalk_sampler_copy(0));
	length = t - starting;
	int error = seedwalk_sampler_copy(Allocation);
	asked++, full += error == SEEDWALK_FULL, refused += error && error != SEEDWALK_FULL;
}

void tell(const Walked &w, const seedwalk_stack *s)
{
	for (int i = 0; i < w.count; i++)
		fprintf(stderr, "now  %lx sp %lx function %lx kind %d gap %d\n", w.frames[i].ip, w.frames[i].sp, w.frames[i].function, w.frames[i].kind, w.frames[i].gap);
	for (int i = 0; i < s->count; i++)
		fprintf(stderr, "copy %lx sp %lx function %lx kind %d gap %d %s %s\n", s->frames[i].frame.ip, s->frames[i].frame.sp, s->frames[i].frame.function, s->frames[i].frame.kind,
			s->frames[i].frame.gap, s->frames[i].method, s->frames[i].path);
}

// From the callback on, both stacks must be the same but for stubs: the leaf is take() at
// two places, and above it in the one walked at once is now::walk.
void compare(int kind, const Walked &w, const seedwalk_stack *s)
{
	gaps += w.gap != 0;
	bool ok = true;
	int i = 2, k = 1;
	for (; ok && (i < w.count || k < s->count); i++, k++) {
		for (; i < w.count && w.frames[i].kind == SEEDWALK_STUB; i++) // of those the CLR does not tell
			;
		for (; k < s->count && s->frames[k].frame.kind == SEEDWALK_STUB; k++)
			;
		if (i == w.count && k == s->count)
			break;
		const seedwalk_frame &a = w.frames[i], &b = s->frames[k].frame;
		ok = i < w.count && k < s->count && a.ip == b.ip && a.sp == b.sp && a.function == b.function && a.kind == b.kind;
	}
	if (!ok && getenv("COPIES_TELL"))
		tell(w, s);
	(ok ? same : other)[kind]++;
}

void on_stack(void *, const seedwalk_stack *s)
{
	int kind = (s->tag & 0xff) < Kinds ? static_cast<int>(s->tag & 0xff) : 0;
	all[kind]++, whole[kind] += s->gap == 0;
	bool main = s->os_thread == static_cast<uint64_t>(getpid());
	natives += main;
	for (int i = 0; main && i < s->count; i++) { // one of the last functions of the first thread is libc's
		const seedwalk_named_frame &f = s->frames[i];
		named += strcmp(f.method, "__libc_start_main") == 0 && strstr(f.path, "/libc.so") && *f.build_id;
	}
	if (uint64_t slot = s->tag >> 8) {
		Walked &w = walked[slot - 1];
		compare(kind, w, s);
		w.used = false;
	}
	for (int i = 0; sourced && s->sources && i < s->count; i++)
		if (s->frames[i].frame.function)
			fprintf(sourced, "%s %s:%d+%d%c", s->frames[i].method, s->sources[i].file, s->sources[i].line, s->sources[i].il_offset, i == s->count - 1 ? ' ' : ';');
	if (sourced)
		fputc('\n', sourced);
	if (kind != Exception || !thrown)
		return;
	std::string line;
	for (int i = 0; i < s->count; i++)
		if (s->frames[i].frame.function)
			line += std::string(line.empty() ? "" : ";") + s->frames[i].method;
	fprintf(thrown, "%s\n", line.c_str());
}

void *life(void *)
{
	for (Walked &w : walked)
		if (both)
			w.frames = static_cast<seedwalk_frame *>(calloc(now::room, sizeof *w.frames));
	if (both)
		now::open(corinfo);
	seedwalk_sampler_request request{};
	seedwalk_sampler_result result{};
	request.size = sizeof request, result.size = sizeof result;
	int rounds = 0;
	request.on_stack = on_stack, request.flags = SEEDWALK_COPIES | (sourced ? SEEDWALK_SOURCES : 0);
	const int patience = rate ? 100 : 1;
	for (int left = patience; left > 0;) { // what was copied before the end is walked
		left -= stopping;
		const long before = all[Allocation];
		int error = seedwalk_sampler_sample(&request, &result);
		char text[200];
		if (error && error != SEEDWALK_NOT_OPEN && seedwalk_sampler_problem(text, sizeof text) > 0)
			fprintf(stderr, "sampler: %s\n", text);
		if (rate && all[Allocation] != before)
			left = patience;
		dropped = static_cast<long>(result.dropped);
		if (both && ++rounds % 128 == 0)
			now::tidy();
		usleep(2000);
	}
	stopped = true;
	return nullptr;
}

// keep tells the client library, if that is linked, where to keep copies.
void keep(const char *path)
{
	seedwalk_client_options o{};
	o.size = sizeof o, o.keep = path;
	if (path && seedwalk_client_configure)
		kept = seedwalk_client_configure(&o) == SEEDWALK_OK;
}

Result initialize(void *, void *info)
{
	keep(getenv("COPIES_KEEP"));
	corinfo = info, both = getenv("COPIES_NOW");
	seedwalk_sampler_options options{};
	options.size = sizeof options;
	options.info = info;
	if (const char *text = getenv("COPIES_RATE"))
		rate = atol(text);
	if (const char *path = getenv("COPIES_SOURCES"))
		sourced = fopen(path, "w");
	if (const char *path = getenv("COPIES_THROWN"))
		thrown = fopen(path, "w");
	auto set_event_mask = reinterpret_cast<Result (*)(void *, uint32_t)>((*static_cast<void ***>(info))[16]);
	pthread_t t;
	return seedwalk_sampler_open(&options) == SEEDWALK_OK && set_event_mask(info, mask) == ok && pthread_create(&t, nullptr, life, nullptr) == 0 ? ok : fail;
}

Result shutdown_(void *)
{
	stopping = true;
	for (int ms = 0; !stopped && ms < 3000; ms++)
		usleep(1000);
	seedwalk_sampler_close();
	const char *path = getenv("COPIES_OUT");
	FILE *f = path ? fopen(path, "w") : nullptr;
	for (int k = 1; f && k < Kinds; k++)
		fprintf(f, "%s %ld of %ld\n", names[k], whole[k], all[k]);
	if (f)
		fprintf(f, "dropped %ld\nnative %ld of %ld\n", dropped, named, natives);
	for (int k = 1; f && both && k < Kinds; k++)
		fprintf(f, "now-%s %ld of %ld\n", names[k], same[k], same[k] + other[k]);
	if (f)
		fprintf(f, "rate %ld asked %ld full %ld refused %.2f s\n", asked.load(), full.load(), refused.load(), length.load());
	if (f)
		fprintf(f, "now-gaps %ld\nnow-busy %ld\nnow-ns %ld\n", gaps, busy.load(), nanos.load()), fclose(f);
	for (FILE *f : {thrown, sourced})
		if (f)
			fclose(f);
	return ok;
}

Result module_loaded(void *, uint64_t module, Result) { return seedwalk_sampler_module_loaded(module), ok; }
Result module_unloading(void *, uint64_t module) { return seedwalk_sampler_module_unloading(module), ok; }
Result created(void *, uint64_t thread) { return seedwalk_sampler_thread_created(thread), ok; }
Result destroyed(void *, uint64_t thread) { return seedwalk_sampler_thread_destroyed(thread), ok; }
Result assigned(void *, uint64_t thread, uint32_t os_thread) { return seedwalk_sampler_thread_assigned(thread, os_thread), ok; }

// Copies one allocation of 997, and with COPIES_SOURCES one class load of 16. A stack trace loads a thousand
// classes in a tenth of a second, and there is no room for so many copies while the first sources are looked up.
Result allocated(void *, uint64_t, uint64_t) { return rate ? pace() : allocations++ % 997 == 0 ? take(Allocation) : void(), ok; }
Result threw(void *, uint64_t) { return take(Exception), ok; }
Result class_loaded(void *, uint64_t, Result) { return loads++ % (sourced ? 16 : 1) == 0 ? take(ClassLoad) : void(), ok; }
Result jit_started(void *, uint64_t, int) { return take(Jit), ok; }

Result fine(void *) { return ok; }
uint32_t one(void *) { return 1; }
Result query(void *self, const void *, void **out) { return *out = self, ok; }

template <class F> void *slot(F *f) { return reinterpret_cast<void *>(f); }

void *callbacks[128], *object = callbacks;

Result create(void *, void *, const void *, void **out)
{
	for (void *&method : callbacks)
		method = slot(fine);
	callbacks[0] = slot(query), callbacks[1] = callbacks[2] = slot(one);
	callbacks[3] = slot(initialize), callbacks[4] = slot(shutdown_);
	callbacks[14] = slot(module_loaded), callbacks[15] = slot(module_unloading);
	callbacks[29] = slot(created), callbacks[30] = slot(destroyed), callbacks[31] = slot(assigned);
	callbacks[50] = slot(allocated), callbacks[54] = slot(threw), callbacks[19] = slot(class_loaded), callbacks[23] = slot(jit_started);
	return *out = &object, ok;
}

void *factory_methods[] = {slot(query), slot(one), slot(one), slot(create), slot(fine)}, *factory = factory_methods;

} // namespace

extern "C" __attribute__((visibility("default"))) Result DllGetClassObject(const void *, const void *, void **out) { return *out = &factory, ok; }
extern "C" __attribute__((visibility("default"))) Result DllCanUnloadNow() { return 1; }
