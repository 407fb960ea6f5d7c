// Immediate stacks: a thread in a callback of the CLR walks its own stack with the low-level calls. Linux,
// x86-64. See "Walk now" in docs/embedding.md.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "seedwalk.h"

namespace now {

using Result = uint32_t;
constexpr int handles = 4, room = 1 << 13, reported_room = 1 << 13, tries = 2000;

// One thread's data for walks.
struct Walker {
	std::atomic_flag busy = ATOMIC_FLAG_INIT;
	seedwalk_handle handle = 0;
	seedwalk_snapshot_frame *reported = nullptr;
	int count = 0;
};

inline Walker walkers[handles];
inline void *info; // ICorProfilerInfo2
inline std::atomic<bool> ready{false};

template <class F> F method(int slot) { return reinterpret_cast<F>((*static_cast<void ***>(info))[slot]); }

inline bool commit(Walker &w) { return seedwalk_scan(w.handle) == SEEDWALK_OK && seedwalk_commit(w.handle) == SEEDWALK_OK; }

// Call it on a thread of the profiler's own.
inline void open(void *corinfo)
{
	info = corinfo;
	for (Walker &w : walkers) {
		w.reported = static_cast<seedwalk_snapshot_frame *>(calloc(reported_room, sizeof *w.reported));
		if (seedwalk_open(nullptr, &w.handle) != SEEDWALK_OK || !commit(w))
			return;
	}
	ready = true;
}

// Same thread, now and then: the library collects its garbage.
inline void tidy()
{
	for (Walker &w : walkers)
		if (ready && !w.busy.test_and_set())
			seedwalk_commit(w.handle), w.busy.clear();
}

// Returns an unused walker. The owner of one never waits for another thread.
inline Walker *take()
{
	for (int i = 0; i < tries; i++, sched_yield())
		for (Walker &w : walkers)
			if (!w.busy.test_and_set(std::memory_order_acquire))
				return &w;
	return nullptr;
}

inline Result record(uint64_t function, uint64_t, uint64_t, uint32_t, uint8_t *context, void *client)
{
	Walker *w = static_cast<Walker *>(client);
	if (w->count < reported_room)
		seedwalk_record(&w->reported[w->count++], function, context);
	return 0;
}

inline uint64_t from_ip(void *, uint64_t ip)
{
	uint64_t function = 0;
	Result hr = method<Result (*)(void *, uint64_t, uint64_t *)>(7)(info, ip, &function);
	return hr & 0x80000000u ? 0 : function;
}

// The bounds of the thread's stack, looked up once: for the first thread libc reads a file.
inline void bounds(uint64_t *low, uint64_t *high)
{
	static thread_local uint64_t from, to;
	if (pthread_attr_t a; !to && pthread_getattr_np(pthread_self(), &a) == 0) {
		void *at = nullptr;
		size_t size = 0;
		pthread_attr_getstack(&a, &at, &size);
		pthread_attr_destroy(&a);
		from = reinterpret_cast<uint64_t>(at), to = from + size;
	}
	*low = from, *high = to;
}

// Blocks handlers while the thread is inside the library: they would run on Go's small stacks, since the
// CLR's do not request another one (SA_ONSTACK). Signals of faults stay unblocked: their handlers do request
// one.
struct Quiet {
	sigset_t before;
	Quiet()
	{
		sigset_t all;
		sigfillset(&all);
		for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP})
			sigdelset(&all, fault);
		pthread_sigmask(SIG_BLOCK, &all, &before);
	}
	~Quiet() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
};

// Walks the calling thread's stack from the caller of this function on, leaf first, without a copy. Returns
// SEEDWALK_OK or an error.
__attribute__((noinline)) inline int walk(seedwalk_frame *frames, int most, seedwalk_result *result)
{
	Quiet quiet;
	Walker *w = ready ? take() : nullptr;
	if (!w)
		return SEEDWALK_BUSY;
	ucontext_t at;
	getcontext(&at);
	seedwalk_sample s{};
	s.size = sizeof s, s.layout = SEEDWALK_CONTEXT_UCONTEXT, s.context = &at, s.context_size = sizeof at;
	bounds(&s.low, &s.high);
	s.address = static_cast<uint64_t>(at.uc_mcontext.gregs[REG_RSP]);
	s.stack = reinterpret_cast<const uint8_t *>(s.address), s.length = s.high - s.address;
	s.from_ip = from_ip;
	method<Result (*)(void *, uint64_t *)>(13)(info, &s.thread); // GetCurrentThreadID
	w->count = 0;
	seedwalk_merge_request q{};
	q.size = sizeof q, q.room = most, q.sample = &s, q.frames = frames, q.reported = w->reported;
	q.hresult = method<Result (*)(void *, uint64_t, void *, uint32_t, void *, uint8_t *, uint32_t)>(36)(info, 0, reinterpret_cast<void *>(record), 1, w, nullptr, 0);
	q.count = w->count;
	result->size = sizeof *result;
	int err = seedwalk_merge(w->handle, &q, result);
	if (!err && result->gap && result->rescan && commit(*w)) // code that was added after the last commit
		err = seedwalk_merge(w->handle, &q, result);
	w->busy.clear(std::memory_order_release);
	return err;
}

} // namespace now
