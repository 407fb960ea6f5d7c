// A sampling profiler that runs its own protocol with the low-level calls of
// seedwalk.h, for Linux x86-64: docs/embedding.md step by step. Its numbers stand in
// the comments. With Microsoft's corprof.h the vtable slots would be method calls.
//
//     g++ -std=c++17 -O2 -shared -fPIC -o libown.so own_protocol.cpp libseedwalk.a -lpthread
//
// At the end it writes to the file OWN_PROTOCOL_OUT how many samples it took.
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include "seedwalk.h"

namespace {

using Result = uint32_t;
constexpr Result ok = 0, fail = 0x80004005, no_interface = 0x80004002;
enum Slot { FromIP = 7, SetEventMask = 16, Snapshot = 36, Suspend = 97, Resume = 98 }; // of ICorProfilerInfo10
constexpr uint32_t mask = 0x10000224;                                                  // module loads, JIT, threads, stack snapshot

void *info;
template <class... A> Result call(Slot slot, A... a)
{
	return (*reinterpret_cast<Result (***)(void *, A...)>(info))[slot](info, a...);
}

// ---- threads: what the callbacks write and the sampler reads, without a lock ----
struct Thread {
	std::atomic<uint64_t> id{0}; // ThreadID; 0: free
	std::atomic<long> tid{0};    // 0: not yet bound to a thread of the system
	pthread_t handle;
	uint64_t low, high;
};
Thread threads[1024];
std::atomic<bool> window{false}, stopping{false}, armed{false}, code_changed{true};

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

Result thread_assigned(void *, uint64_t id, uint32_t) // on the thread itself, in cooperative mode: no lock
{
	Thread *t = find(id);
	pthread_attr_t attr;
	void *low;
	size_t size;
	if (!t || pthread_getattr_np(pthread_self(), &attr) != 0)
		return ok;
	if (pthread_attr_getstack(&attr, &low, &size) == 0) {
		t->low = reinterpret_cast<uint64_t>(low);
		t->high = t->low + size;
		t->handle = pthread_self();
		t->tid = syscall(SYS_gettid);
	}
	pthread_attr_destroy(&attr);
	return ok;
}

Result thread_destroyed(void *, uint64_t id) // may wait: a walk of a thread that is gone ends the process
{
	if (Thread *t = find(id)) {
		t->tid = 0;
		while (window)
			usleep(100);
		t->id = 0;
	}
	return ok;
}

Result code_came(void *) // module loads and JIT: what happened is only noted
{
	code_changed = true;
	return ok;
}

// ---- step 4: a sample ----
enum State { Idle, Asked, Copying, Copied };
struct Sample {
	std::atomic<int> state{Idle};
	std::atomic<long> tid{0};
	uint64_t id, low, high;
	ucontext_t context;
	uint64_t address, length;
	uint8_t stack[1 << 18];
	seedwalk_snapshot_frame frames[4096];
	int count;
	Result result;
};
constexpr int slots = 16;
Sample samples[slots];

void on_signal(int, siginfo_t *why, void *context) // copies, and nothing else
{
	Sample &s = samples[why->si_value.sival_int & (slots - 1)];
	int asked = Asked, saved = errno;
	if (s.tid == syscall(SYS_gettid) && s.state.compare_exchange_strong(asked, Copying)) {
		memcpy(&s.context, context, sizeof s.context);
		uint64_t sp = static_cast<uint64_t>(s.context.uc_mcontext.gregs[REG_RSP]);
		s.address = sp - 128; // the red zone
		s.length = sp > s.low && sp < s.high ? s.high - s.address : 0;
		if (s.length > sizeof s.stack)
			s.length = sizeof s.stack;
		memcpy(s.stack, reinterpret_cast<const void *>(s.address), s.length);
		s.state = Copied;
	}
	errno = saved;
}

void ask(Sample &s, Thread &t)
{
	s.id = t.id, s.low = t.low, s.high = t.high, s.count = 0, s.result = fail;
	s.tid = t.tid.load();
	if (!s.tid)
		return;
	s.state = Asked;
	sigval value;
	value.sival_int = static_cast<int>(&s - samples);
	if (pthread_sigqueue(t.handle, SIGRTMIN + 5, value) != 0)
		s.state = Idle;
}

bool answered(Sample &s) // within 25 ms
{
	for (int i = 0; i < 500 && s.state != Copied && s.state != Idle; i++)
		usleep(50);
	int asked = Asked;
	s.state.compare_exchange_strong(asked, Idle);
	return s.state == Copied;
}

Result record(uint64_t function, uint64_t, uint64_t, uint32_t, uint8_t *context, void *client) // step 6
{
	Sample &s = *static_cast<Sample *>(client);
	if (s.count == static_cast<int>(sizeof s.frames / sizeof *s.frames))
		return 1;
	seedwalk_record(&s.frames[s.count++], function, context);
	return ok;
}

// One suspension of the runtime: no heap, no lock, no output in here.
int take()
{
	int n = 0;
	window = true;
	if (call(Suspend) != ok) { // a collection is under way: next time
		window = false;
		return 0;
	}
	static size_t turn;
	for (size_t i = 0; i < 1024 && n < slots; i++) {
		Thread &t = threads[(turn + i) % 1024];
		if (t.tid && samples[n].state != Copying)
			ask(samples[n++], t);
	}
	turn += 1; // others come first the next time, if there are more than slots
	for (int i = 0; i < n; i++)
		if (answered(samples[i]))
			samples[i].result = call(Snapshot, samples[i].id, reinterpret_cast<void *>(record), 1u, static_cast<void *>(&samples[i]), static_cast<uint8_t *>(nullptr), 0u);
	call(Resume);
	window = false;
	return n;
}

// ---- step 7: merging, when nothing is suspended ----
uint64_t from_ip(void *, uint64_t ip)
{
	uint64_t function = 0;
	return call(FromIP, ip, &function) & 0x80000000 ? 0 : function;
}

struct Counts {
	long taken, complete, frames, unmanaged;
	std::map<std::string, long> gaps;
} counts;

bool merge(seedwalk_handle h, Sample &s)
{
	static seedwalk_frame frames[16384];
	seedwalk_sample sample{};
	sample.size = sizeof sample;
	sample.layout = SEEDWALK_CONTEXT_UCONTEXT;
	sample.context = &s.context, sample.context_size = sizeof s.context;
	sample.address = s.address, sample.stack = s.stack, sample.length = s.length;
	sample.low = s.low, sample.high = s.high;
	sample.thread = s.id, sample.from_ip = from_ip;
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
	for (int i = 0; i < result.frames; i++)
		counts.unmanaged += frames[i].kind == SEEDWALK_NATIVE;
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
	fclose(f);
}

void sampler(std::atomic<int> *opened)
{
	seedwalk_handle h = 0;
	*opened = seedwalk_open(nullptr, &h) == SEEDWALK_OK ? 1 : -1; // step 1
	while (!armed && !stopping)
		usleep(1000);
	for (int round = 0; h && !stopping; round++) {
		if (code_changed.exchange(false) && seedwalk_scan(h) != SEEDWALK_OK) // step 2, at most 100 times a second
			code_changed = true;
		seedwalk_commit(h); // step 8
		for (int n = take(), i = 0; i < n; i++)
			if (samples[i].state == Copied && merge(h, samples[i]))
				code_changed = true;
		usleep(10000);
	}
	seedwalk_close(h);
	write();
}

std::thread thread_;

Result initialize(void *, void *unknown)
{
	static const uint8_t info10[16] = {0x52, 0x51, 0x1b, 0x2f, 0x69, 0xc8, 0xc9, 0x40, 0xaa, 0x5f, 0x3a, 0xbe, 0x02, 0x6b, 0xd7, 0x20};
	static std::atomic<int> opened{0};
	info = unknown;
	void *newer = nullptr;
	if (call(static_cast<Slot>(0), static_cast<const void *>(info10), &newer) != ok) // QueryInterface
		return fail;
	info = newer;
	struct sigaction act {};
	act.sa_sigaction = on_signal;
	act.sa_flags = SA_SIGINFO | SA_RESTART; // no SA_ONSTACK: see profiler/host/capture_linux.c
	sigfillset(&act.sa_mask);
	thread_ = std::thread(sampler, &opened);
	while (!opened)
		usleep(1000);
	if (opened < 0 || sigaction(SIGRTMIN + 5, &act, nullptr) != 0 || call(SetEventMask, mask) != ok)
		return fail;
	armed = true;
	return ok;
}

Result shutdown_(void *)
{
	stopping = true;
	thread_.join();
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
	callbacks[29] = reinterpret_cast<void *>(thread_created);
	callbacks[30] = reinterpret_cast<void *>(thread_destroyed);
	callbacks[31] = reinterpret_cast<void *>(thread_assigned);
	return *out = &object, ok;
}

void *factory_methods[] = {reinterpret_cast<void *>(query), reinterpret_cast<void *>(one), reinterpret_cast<void *>(one), reinterpret_cast<void *>(create), reinterpret_cast<void *>(fine)};
void *factory = factory_methods;

} // namespace

extern "C" __attribute__((visibility("default"))) Result DllGetClassObject(const void *, const void *, void **out)
{
	return *out = &factory, ok;
}

extern "C" __attribute__((visibility("default"))) Result DllCanUnloadNow() { return 1; }
