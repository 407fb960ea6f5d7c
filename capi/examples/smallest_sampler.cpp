// The smallest sampling profiler: the library runs the protocol, this file forwards
// callbacks and owns a timer. x86-64 Linux and Windows, .NET Core 3.0 or 2.0 and later.
//
//     g++ -std=c++17 -O2 -shared -fPIC -o libsmallest.so smallest_sampler.cpp libseedwalk.a -lpthread
//     x86_64-w64-mingw32-g++ -std=c++17 -O2 -shared -o smallest.dll smallest_sampler.cpp libseedwalk.a -lsynchronization
//
// At the end it writes to the file SAMPLER_OUT how many stacks it has, and which methods
// stand on top of most. With Microsoft's corprof.h the slots would be methods of a class.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN // without its own DllGetClassObject
#include <windows.h>
#define EXPORT __declspec(dllexport)
#else
#include <pthread.h>
#include <unistd.h>
#define EXPORT __attribute__((visibility("default")))
#endif

#include "seedwalk.h"

namespace {

using Result = uint32_t; // HRESULT
constexpr Result ok = 0, fail = 0x80004005;

// ---- the timer's thread ----
std::atomic<bool> stopping{false}, stopped{false};
struct {
	long samples, complete, frames, unmanaged, waiting;
	std::map<std::string, long> top, gaps;
} counts;

void on_stack(void *, const seedwalk_stack *s) // nothing is suspended here: do what you like
{
	bool named = false;
	char gap[64];
	seedwalk_gap_name(s->gap, gap, sizeof gap);
	counts.gaps[gap]++;
	counts.samples++, counts.complete += s->gap == 0, counts.frames += s->count;
	counts.waiting += s->waiting > 0;
	for (int i = s->waiting; i < s->count; i++) {
		const seedwalk_named_frame &f = s->frames[i];
		counts.unmanaged += f.frame.kind == SEEDWALK_NATIVE;
		if (!named && f.frame.function)
			counts.top[f.method]++, named = true;
	}
}

void sample() // until the process ends, 100 times a second
{
	seedwalk_sampler_request request{};
	request.size = sizeof request;
	request.on_stack = on_stack;
	for (int error = 0; !stopping && !error;) {
		error = seedwalk_sampler_sample(&request, nullptr);
		char text[200];
		if (error && error != SEEDWALK_NOT_OPEN && seedwalk_sampler_problem(text, sizeof text) > 0)
			fprintf(stderr, "sampler: %s\n", text);
#ifdef _WIN32
		Sleep(10);
	}
	stopped = true;
}
DWORD WINAPI life(void *) { return sample(), 0; }
bool start() { return CreateThread(nullptr, 0, life, nullptr, 0, nullptr) != nullptr; }
void rest() { Sleep(1); }
#else
		usleep(10000);
	}
	stopped = true;
}
void *life(void *) { return sample(), nullptr; }
bool start() { pthread_t t; return pthread_create(&t, nullptr, life, nullptr) == 0; }
void rest() { usleep(1000); }
#endif

// ---- what the CLR calls ----
Result initialize(void *, void *info)
{
	seedwalk_sampler_options options{};
	options.size = sizeof options;
	options.info = info;
	auto set_event_mask = reinterpret_cast<Result (*)(void *, uint32_t)>((*static_cast<void ***>(info))[16]);
	int error = seedwalk_sampler_open(&options);
	return error == SEEDWALK_OK && set_event_mask(info, SEEDWALK_SAMPLER_EVENTS) == ok && start() ? ok : fail;
}

Result shutdown_(void *)
{
	stopping = true;
	seedwalk_sampler_close();
	for (int ms = 0; !stopped && ms < 3000; ms++)
		rest();
	const char *path = getenv("SAMPLER_OUT");
	FILE *f = path ? fopen(path, "w") : nullptr;
	if (!f)
		return ok;
	fprintf(f, "samples %ld complete %ld frames %ld unmanaged %ld\n", counts.samples, counts.complete, counts.frames, counts.unmanaged);
	fprintf(f, "waiting %ld\n", counts.waiting);
	for (auto &g : counts.gaps)
		fprintf(f, "gap %s %ld\n", g.first.c_str(), g.second);
	for (auto &t : counts.top)
		fprintf(f, "top %ld %s\n", t.second, t.first.c_str());
	fclose(f);
	return ok;
}

Result module_loaded(void *, uint64_t module, Result) { return seedwalk_sampler_module_loaded(module), ok; }
Result module_unloading(void *, uint64_t module) { return seedwalk_sampler_module_unloading(module), ok; }
Result created(void *, uint64_t thread) { return seedwalk_sampler_thread_created(thread), ok; }
Result destroyed(void *, uint64_t thread) { return seedwalk_sampler_thread_destroyed(thread), ok; }
Result assigned(void *, uint64_t thread, uint32_t os_thread) { return seedwalk_sampler_thread_assigned(thread, os_thread), ok; }
Result named(void *, uint64_t thread, uint32_t units, const void *name) { return seedwalk_sampler_thread_named(thread, units, name), ok; }

// ---- the COM face ----
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
	callbacks[29] = slot(created), callbacks[30] = slot(destroyed), callbacks[31] = slot(assigned), callbacks[72] = slot(named);
	return *out = &object, ok;
}

void *factory_methods[] = {slot(query), slot(one), slot(one), slot(create), slot(fine)}, *factory = factory_methods;

} // namespace

extern "C" EXPORT Result DllGetClassObject(const void *, const void *, void **out) { return *out = &factory, ok; }
extern "C" EXPORT Result DllCanUnloadNow() { return 1; } // S_FALSE: Go stays
