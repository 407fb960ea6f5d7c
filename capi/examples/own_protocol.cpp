// A sampling profiler that runs its own protocol with the low-level calls of
// seedwalk.h, for x86-64 Linux (SuspendRuntime, a signal) and Windows (one thread
// suspended after the other, asynchronous stack walks with a seed): docs/embedding.md
// step by step. Its numbers stand in the comments. With Microsoft's corprof.h the
// vtable slots would be method calls.
//
// The taking of a sample stands in own_protocol_linux.h and own_protocol_windows.h.
//
//     g++ -std=c++17 -O2 -shared -fPIC -o libown.so own_protocol.cpp libseedwalk.a -lpthread
//     x86_64-w64-mingw32-g++ -std=c++17 -O2 -shared -o own.dll own_protocol.cpp libseedwalk.a -lsynchronization
//
// At the end it writes to the file OWN_PROTOCOL_OUT how many samples it took, and of
// each method its FunctionID, how often it was on top, and its name.
#ifdef _WIN32
#undef _WIN32_WINNT
#define _WIN32_WINNT 0x0602 // GetCurrentThreadStackLimits
#define WIN32_LEAN_AND_MEAN // without its own DllGetClassObject
#include <windows.h>
#define EXPORT __declspec(dllexport)
#else
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#define EXPORT __attribute__((visibility("default")))
#endif

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "seedwalk.h"

namespace {

using Result = uint32_t;
constexpr Result ok = 0, fail = 0x80004005, no_interface = 0x80004002;
enum Slot { Query, Release = 2, FromIP = 7, SetEventMask = 16, Metadata = 19, Snapshot = 36, Suspend = 97, Resume = 98 }; // of ICorProfilerInfo10
enum { TypeProps = 12, MethodProps = 30, Nested = 62 };                                                                 // of IMetaDataImport
constexpr uint32_t mask = 0x10000224; // module loads, JIT, threads, stack snapshot

void *info;
template <class... A> Result call_on(void *object, int slot, A... a)
{
	return (*reinterpret_cast<Result (***)(void *, A...)>(object))[slot](object, a...);
}
template <class... A> Result call(Slot slot, A... a) { return call_on(info, slot, a...); }

#ifdef _WIN32
void rest(int ms) { Sleep(static_cast<DWORD>(ms)); }
#else
void rest(int ms) { usleep(static_cast<useconds_t>(ms) * 1000); }
#endif

// ---- threads: what the callbacks write and the sampler reads, without a lock ----
struct Thread {
	std::atomic<uint64_t> id{0}; // ThreadID; 0: free
	std::atomic<long> tid{0};    // 0: not bound to a thread of the system, or no longer
	uint64_t low, high;
#ifdef _WIN32
	HANDLE handle;
	const NT_TIB *tib; // says how far down its stack is there
#endif
};
Thread threads[1024];
std::atomic<bool> window{false};     // Linux: all threads are being walked
std::atomic<uint64_t> claimed{0};    // Windows: this one is
std::atomic<bool> naming{false};     // names are asked for: no module may go
std::atomic<bool> stopping{false}, stopped{false}, armed{false}, code_changed{true};

Thread *find(uint64_t id)
{
	for (Thread &t : threads)
		if (t.id == id)
			return &t;
	return nullptr;
}

Result thread_created(void *, uint64_t id)
{
	for (Thread &t : threads) {
		uint64_t none = 0;
		if (t.id.compare_exchange_strong(none, id))
			break;
	}
	return ok;
}

long bind(Thread &t, uint32_t os_thread); // what the system must be told to stop it; its number, 0: none
void unbind(Thread &t);

Result thread_assigned(void *, uint64_t id, uint32_t os_thread) // on the thread itself, in cooperative mode: no lock
{
	Thread *t = find(id);
	if (t && !t->tid)
		t->tid = bind(*t, os_thread);
	return ok;
}

Result thread_destroyed(void *, uint64_t id) // may wait: a walk of a thread that is gone ends the process
{
	Thread *t = find(id);
	if (!t)
		return ok;
	bool bound = t->tid.exchange(0) != 0; // dead from here on: it cannot be claimed any more
	while (window || claimed == id)
		rest(0);
	if (bound)
		unbind(*t);
	t->id = 0;
	return ok;
}

Result code_came(void *) // module loads and JIT: what happened is only noted
{
	code_changed = true;
	return ok;
}

Result module_goes(void *, uint64_t) // its FunctionIDs go with it
{
	while (naming)
		rest(1);
	return ok;
}

// ---- step 4: a sample ----
#ifdef _WIN32
using Context = CONTEXT;
constexpr int layout = SEEDWALK_CONTEXT_WIN32;
#else
using Context = ucontext_t;
constexpr int layout = SEEDWALK_CONTEXT_UCONTEXT;
#endif
enum State { Idle, Asked, Copying, Copied };
struct Sample {
	std::atomic<int> state{Idle};
	std::atomic<long> tid{0};
	uint64_t id, low, high;
	alignas(16) Context context, seed;
	uint64_t address, length;
	uint8_t stack[1 << 18];
	seedwalk_snapshot_frame frames[4096];
	int count;
	Result result;
};
constexpr int slots = 16;
Sample samples[slots];

uint64_t from_ip(void *, uint64_t ip)
{
	uint64_t function = 0;
	return call(FromIP, ip, &function) & 0x80000000 ? 0 : function;
}

seedwalk_sample described(Sample &s)
{
	seedwalk_sample sample{};
	sample.size = sizeof sample;
	sample.layout = layout;
	sample.context = &s.context, sample.context_size = sizeof s.context;
	sample.address = s.address, sample.stack = s.stack, sample.length = s.length;
	sample.low = s.low, sample.high = s.high;
	sample.thread = s.id, sample.from_ip = from_ip;
	return sample;
}

Result record(uint64_t function, uint64_t, uint64_t, uint32_t, uint8_t *context, void *client) // step 6
{
	Sample &s = *static_cast<Sample *>(client);
	if (s.count == static_cast<int>(sizeof s.frames / sizeof *s.frames))
		return 1;
	seedwalk_record(&s.frames[s.count++], function, context);
	return ok;
}

Result ask_clr(Sample &s, void *seed)
{
	s.count = 0;
	return call(Snapshot, s.id, reinterpret_cast<void *>(record), 1u, static_cast<void *>(&s), static_cast<uint8_t *>(seed), seed ? static_cast<uint32_t>(sizeof s.seed) : 0u);
}

void renew(seedwalk_handle h) // step 2, while nothing is suspended
{
	if (!code_changed.exchange(false))
		return;
	if (seedwalk_scan(h) != SEEDWALK_OK)
		code_changed = true;
	seedwalk_commit(h);
}

#ifdef _WIN32
#include "own_protocol_windows.h"
#else
#include "own_protocol_linux.h"
#endif

// ---- step 7: merging, when nothing is suspended ----
std::string text(const char16_t *from, uint32_t units) // names of other alphabets than Latin are left out
{
	std::string out;
	for (uint32_t i = 0; i + 1 < units; i++)
		out += from[i] < 128 ? static_cast<char>(from[i]) : '?';
	return out;
}

std::string type_name(void *import, uint32_t type, int depth)
{
	uint32_t base = 0, flags = 0, units = 0, outer = 0;
	char16_t name[256] = {};
	call_on(import, TypeProps, type, name, 256u, &units, &flags, &base);
	bool nested = depth < 16 && call_on(import, Nested, type, &outer) == ok;
	return (nested ? type_name(import, outer, depth + 1) + "+" : "") + text(name, units);
}

std::string name_of(uint64_t function)
{
	static const uint8_t import_id[16] = {0x07, 0x82, 0xac, 0x7d, 0xae, 0xd3, 0x75, 0x4c, 0x9b, 0x67, 0x92, 0x80, 0x1a, 0x49, 0x7d, 0x44};
	void *import = nullptr, *none = nullptr;
	uint32_t token = 0, type = 0, units = 0;
	char16_t method[256] = {};
	if (call(Metadata, function, static_cast<const void *>(import_id), &import, &token) != ok)
		return "a dynamic method";
	call_on(import, MethodProps, token, &type, method, 256u, &units, none, none, none, none, none);
	std::string name = type_name(import, type, 0) + "." + text(method, units);
	call_on(import, Release);
	return name;
}

struct Method {
	std::string name;
	long top = 0;
};

struct Counts {
	long taken, complete, frames, unmanaged;
	std::map<std::string, long> gaps;
	std::map<uint64_t, Method> methods;
} counts;

void count(const seedwalk_frame *frames, int n)
{
	bool top = true;
	for (int i = 0; i < n; i++) {
		counts.unmanaged += frames[i].kind == SEEDWALK_NATIVE;
		if (!frames[i].function)
			continue;
		Method &m = counts.methods[frames[i].function];
		if (m.name.empty())
			m.name = name_of(frames[i].function);
		m.top += top, top = false;
	}
}

bool merge(seedwalk_handle h, Sample &s)
{
	static seedwalk_frame frames[16384];
	seedwalk_sample sample = described(s);
	seedwalk_merge_request request{};
	request.size = sizeof request;
	request.room = 16384, request.sample = &sample, request.frames = frames;
	request.reported = s.frames, request.count = s.count, request.hresult = s.result;
	seedwalk_result result{};
	result.size = sizeof result;
	if (seedwalk_merge(h, &request, &result) != SEEDWALK_OK)
		return false;
	char gap[64];
	seedwalk_gap_name(result.gap, gap, sizeof gap);
	counts.taken++, counts.complete += result.gap == 0, counts.frames += result.frames, counts.gaps[gap]++;
	count(frames, result.frames);
	return result.rescan != 0;
}

void write()
{
	const char *path = getenv("OWN_PROTOCOL_OUT");
	FILE *f = path ? fopen(path, "w") : nullptr;
	if (!f)
		return;
	fprintf(f, "samples %ld complete %ld frames %ld unmanaged %ld\n", counts.taken, counts.complete, counts.frames, counts.unmanaged);
	for (auto &g : counts.gaps)
		fprintf(f, "gap %s %ld\n", g.first.c_str(), g.second);
	for (auto &m : counts.methods)
		fprintf(f, "method %llx %ld %s\n", static_cast<unsigned long long>(m.first), m.second.top, m.second.name.c_str());
	fclose(f);
}

std::atomic<int> opened{0};

void sampler()
{
	seedwalk_handle h = 0;
	opened = seedwalk_open(nullptr, &h) == SEEDWALK_OK ? 1 : -1; // step 1
	while (!armed && !stopping)
		rest(1);
	while (h && !stopping) {
		renew(h);
		seedwalk_commit(h); // step 8
		int n = take(h);
		naming = true;
		for (int i = 0; i < n; i++)
			if (samples[i].state == Copied && merge(h, samples[i]))
				code_changed = true;
		naming = false;
		rest(10);
	}
	seedwalk_close(h);
	stopped = true;
}

Result initialize(void *, void *unknown)
{
	void *newer = nullptr;
	info = unknown;
	if (call(Query, static_cast<const void *>(wanted), &newer) != ok || !start(sampler))
		return fail;
	info = newer;
	while (!opened)
		rest(1);
	if (opened < 0 || !set_signal() || call(SetEventMask, mask) != ok)
		return fail;
	armed = true;
	return ok;
}

Result shutdown_(void *)
{
	stopping = true;
	for (int ms = 0; !stopped && ms < 3000; ms++) // a thread that the system has ended never says so
		rest(1);
	write();
	return ok;
}

// ---- the COM face ----
Result fine(void *) { return ok; }
uint32_t one(void *) { return 1; }
Result query(void *self, const void *, void **out) { return *out = self, ok; }

void *callbacks[128], *object = callbacks;

Result create(void *, void *outer, const void *, void **out)
{
	if (outer)
		return no_interface;
	for (void *&method : callbacks)
		method = reinterpret_cast<void *>(fine);
	callbacks[0] = reinterpret_cast<void *>(query);
	callbacks[1] = callbacks[2] = reinterpret_cast<void *>(one);
	callbacks[3] = reinterpret_cast<void *>(initialize);
	callbacks[4] = reinterpret_cast<void *>(shutdown_);
	callbacks[14] = callbacks[24] = callbacks[93] = reinterpret_cast<void *>(code_came); // ModuleLoadFinished, JIT, dynamic methods
	callbacks[15] = reinterpret_cast<void *>(module_goes); // ModuleUnloadStarted
	callbacks[29] = reinterpret_cast<void *>(thread_created);
	callbacks[30] = reinterpret_cast<void *>(thread_destroyed);
	callbacks[31] = reinterpret_cast<void *>(thread_assigned);
	return *out = &object, ok;
}

void *factory_methods[] = {reinterpret_cast<void *>(query), reinterpret_cast<void *>(one), reinterpret_cast<void *>(one), reinterpret_cast<void *>(create), reinterpret_cast<void *>(fine)};
void *factory = factory_methods;

} // namespace

extern "C" EXPORT Result DllGetClassObject(const void *, const void *, void **out)
{
	return *out = &factory, ok;
}

extern "C" EXPORT Result DllCanUnloadNow() { return 1; }
