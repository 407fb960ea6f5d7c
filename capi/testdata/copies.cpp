// A test's profiler: in callbacks each thread copies its own stack, the timer's thread has
// the copies walked. Writes to COPIES_OUT how many stacks of each callback there were, and
// to COPIES_THROWN a line for each exception: its managed methods, leaf first.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "seedwalk.h"

namespace {

using Result = uint32_t;
constexpr Result ok = 0, fail = 0x80004005;
// COR_PRF_MONITOR_EXCEPTIONS, MONITOR_CLASS_LOADS, MONITOR_JIT_COMPILATION, MONITOR_ and ENABLE_OBJECT_ALLOCATED
constexpr uint32_t mask = SEEDWALK_SAMPLER_EVENTS | 0x40 | 0x2 | 0x20 | 0x800100;

enum Kind { Allocation = 1, Exception, ClassLoad, Jit, Kinds };
const char *const names[] = {"", "allocation", "exception", "class-load", "jit"};
std::atomic<bool> stopping{false}, stopped{false};
std::atomic<long> allocations{0};
long whole[Kinds], all[Kinds], dropped;
FILE *thrown;

void on_stack(void *, const seedwalk_stack *s)
{
	int kind = s->tag < Kinds ? static_cast<int>(s->tag) : 0;
	all[kind]++, whole[kind] += s->gap == 0;
	if (kind != Exception || !thrown)
		return;
	std::string line;
	for (int i = 0; i < s->count; i++)
		if (*s->frames[i].method)
			line += std::string(line.empty() ? "" : ";") + s->frames[i].method;
	fprintf(thrown, "%s\n", line.c_str());
}

void *life(void *)
{
	seedwalk_sampler_request request{};
	seedwalk_sampler_result result{};
	request.size = sizeof request, result.size = sizeof result;
	request.on_stack = on_stack, request.flags = SEEDWALK_COPIES;
	for (bool last = false; !last;) {
		last = stopping; // what was copied before the end is walked
		int error = seedwalk_sampler_sample(&request, &result);
		char text[200];
		if (error && error != SEEDWALK_NOT_OPEN && seedwalk_sampler_problem(text, sizeof text) > 0)
			fprintf(stderr, "sampler: %s\n", text);
		dropped = static_cast<long>(result.dropped);
		usleep(2000);
	}
	stopped = true;
	return nullptr;
}

Result initialize(void *, void *info)
{
	seedwalk_sampler_options options{};
	options.size = sizeof options;
	options.info = info;
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
		fprintf(f, "dropped %ld\n", dropped), fclose(f);
	if (thrown)
		fclose(thrown);
	return ok;
}

Result module_loaded(void *, uint64_t module, Result) { return seedwalk_sampler_module_loaded(module), ok; }
Result module_unloading(void *, uint64_t module) { return seedwalk_sampler_module_unloading(module), ok; }
Result created(void *, uint64_t thread) { return seedwalk_sampler_thread_created(thread), ok; }
Result destroyed(void *, uint64_t thread) { return seedwalk_sampler_thread_destroyed(thread), ok; }
Result assigned(void *, uint64_t thread, uint32_t os_thread) { return seedwalk_sampler_thread_assigned(thread, os_thread), ok; }

// Every allocation comes here: most are let pass.
Result allocated(void *, uint64_t, uint64_t) { return allocations++ % 997 == 0 ? seedwalk_sampler_copy(Allocation) : 0, ok; }
Result threw(void *, uint64_t) { return seedwalk_sampler_copy(Exception), ok; }
Result class_loaded(void *, uint64_t, Result) { return seedwalk_sampler_copy(ClassLoad), ok; }
Result jit_started(void *, uint64_t, int) { return seedwalk_sampler_copy(Jit), ok; }

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
