/* A sampling profiler with a protocol of its own, by the low-level calls of seedwalk.h: x86-64 Windows. It suspends one
 * thread after another, walks it to its first managed frame, and passes that frame to the CLR as the seed. The numbers
 * of the steps are those of docs/embedding.md. At the end it writes to the file OWN_PROTOCOL_OUT how many samples it has.
 *
 *     x86_64-w64-mingw32-gcc -O2 -shared -o own.dll own_protocol_windows.c libseedwalk.a -lsynchronization */
#define _WIN32_WINNT 0x0602 /* GetCurrentThreadStackLimits */
#define WIN32_LEAN_AND_MEAN 1 /* without its own DllGetClassObject */
#include <windows.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include "seedwalk.h"

typedef uint32_t result; /* HRESULT */
enum { OK = 0, FAIL = (int)0x80004005, UNMANAGED_CONTEXT = (int)0x8013135f, EVENTS = 0x10000224 /* module loads, JIT, threads, stack snapshot */ };
enum { FROM_IP = 7, SET_EVENT_MASK = 16, SNAPSHOT = 36 }; /* slots of ICorProfilerInfo2 */
#define METHOD(object, slot, ...) ((result(*)(void *, ##__VA_ARGS__))(*(void ***)(object))[slot])
static void *info;
static seedwalk_handle handle;
static atomic_int opened, armed, stopping, stopped, code_changed = 1;

/* ---- threads: callbacks write them and the sampler reads them, without a lock ---- */
enum { THREADS = 1024 };
static struct thread {
	_Atomic uint64_t id;    /* ThreadID; 0: free */
	_Atomic(HANDLE) handle; /* 0: do not sample it */
	ULONG_PTR low, high;
	const NT_TIB *tib; /* says how far down its stack is there */
} threads[THREADS];
static _Atomic uint64_t claimed; /* the ThreadID that is being walked */

static result assigned(void *self, uint64_t id, uint32_t os_thread) /* on the thread itself, in cooperative mode: no lock */
{
	int i = 0;
	while (i < THREADS && !atomic_compare_exchange_strong(&threads[i].id, &(uint64_t){0}, id))
		i++;
	if (i == THREADS)
		return (result)FAIL;
	GetCurrentThreadStackLimits(&threads[i].low, &threads[i].high);
	__asm__("mov %%gs:0x30, %0" : "=r"(threads[i].tib)); /* NT_TIB.Self */
	threads[i].handle = OpenThread(THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION, FALSE, os_thread);
	return (void)self, OK;
}

static result destroyed(void *self, uint64_t id) /* may wait: a walk of a thread that is gone ends the process */
{
	for (struct thread *t = threads; t < threads + THREADS; t++)
		if (t->id == id) {
			HANDLE h = atomic_exchange(&t->handle, (HANDLE)0); /* from here on it cannot be claimed */
			while (claimed == id)
				Sleep(0);
			if (h)
				CloseHandle(h);
			t->id = 0;
		}
	return (void)self, OK;
}

/* ---- step 4: a sample ---- */
enum { REPORTED = 4096, WALKED = 512, TRIES = 6 };
static uint64_t from_ip(void *client, uint64_t ip)
{
	uint64_t function = 0;
	return (void)client, METHOD(info, FROM_IP, uint64_t, uint64_t *)(info, ip, &function) ? 0 : function;
}

static CONTEXT context, seed;
static uint8_t stack[1 << 18];
static seedwalk_sample sample = {.size = sizeof sample, .layout = SEEDWALK_CONTEXT_WIN32, .context = &context, .context_size = sizeof context, .stack = stack, .from_ip = from_ip};
static seedwalk_snapshot_frame reported[REPORTED];
static int count; /* of reported */
static result answer;

static result record(uint64_t function, uint64_t ip, uint64_t frame, uint32_t size, void *registers, void *client) /* step 6 */
{
	(void)ip, (void)frame, (void)size, (void)client;
	return count == REPORTED ? 1 : (seedwalk_record(&reported[count++], function, registers), OK);
}

static result ask(void *with)
{
	count = 0;
	return METHOD(info, SNAPSHOT, uint64_t, void *, uint32_t, void *, void *, uint32_t)(info, sample.thread, (void *)record, 1, 0, with, with ? sizeof seed : 0);
}

/* walk finds the seed (step 5) and asks the CLR. It returns 1 if the CLR can answer only after the thread has run on. */
static int walk(void)
{
	static seedwalk_frame frames[WALKED];
	seedwalk_walk_request q = {.size = sizeof q, .room = WALKED, .sample = &sample, .frames = frames, .seed = &seed, .seed_size = sizeof seed};
	seedwalk_result r = {.size = sizeof r};
	seed = context;
	if (seedwalk_walk(handle, &q, &r) || (!r.rescan && r.verdict == SEEDWALK_SEED_NO_MANAGED))
		return 0;
	if (r.rescan)
		code_changed = 1;
	if (r.rescan || r.loading || r.verdict > SEEDWALK_SEED_FOUND)
		return 1;
	answer = ask(r.verdict == SEEDWALK_SEED_FOUND ? &seed : 0);
	if (answer == (result)UNMANAGED_CONTEXT && r.verdict != SEEDWALK_SEED_FOUND) /* meanwhile a collection has redirected it */
		answer = ask(&seed);
	return answer >> 31;
}

/* take samples a thread. From SuspendThread to ResumeThread: no heap, no lock, no output. The handle is read once: the
 * thread may be suspended in destroyed, which has cleared the entry. */
static int take(struct thread *t, int *again)
{
	static int primed;
	ULONG_PTR limit = 0;
	HANDLE thread = 0;
	int usable = (sample.thread = claimed = t->id) && (thread = t->handle) && t->id == claimed; /* in this order: the entry may have been reused */
	answer = (result)FAIL, count = 0, *again = 0, sample.low = t->low, sample.high = t->high, sample.length = 0;
	if (usable && !primed) /* step 3 */
		ask(0), primed = count > 0, usable = 0;
	context.ContextFlags = CONTEXT_FULL | CONTEXT_FLOATING_POINT;
	if (usable && SuspendThread(thread) != (DWORD)-1) {
		if (GetThreadContext(thread, &context)) /* only now is it certainly stopped */
			sample.address = context.Rsp, limit = (ULONG_PTR)t->tib->StackLimit;
		if (limit && sample.address >= limit && sample.address < sample.high) /* else on a fiber, or at the guard page */
			sample.length = sample.high - sample.address < sizeof stack ? sample.high - sample.address : sizeof stack;
		memcpy(stack, (const void *)sample.address, sample.length);
		*again = sample.length && walk();
		ResumeThread(thread);
	}
	return atomic_store(&claimed, 0), sample.length > 0;
}

/* ---- step 7: merging, when nothing is suspended ---- */
static long samples, complete, frames, unmanaged;

static void merge(void)
{
	static seedwalk_frame all[16384];
	seedwalk_merge_request q = {.size = sizeof q, .room = 16384, .sample = &sample, .frames = all, .reported = reported, .count = count, .hresult = answer};
	seedwalk_result r = {.size = sizeof r};
	if (seedwalk_merge(handle, &q, &r))
		return;
	if (r.rescan)
		code_changed = 1;
	samples++, complete += !r.gap, frames += r.frames;
	for (int i = 0; i < r.frames; i++) /* your code goes here */
		unmanaged += all[i].kind == SEEDWALK_NATIVE;
}

static DWORD WINAPI life(void *nothing)
{
	opened = seedwalk_open(0, &handle) ? -1 : 1; /* step 1 */
	for (int turn = 0, again, taken; !stopping; turn = (turn + 1) % THREADS) {
		if (turn == 0 || threads[turn].handle)
			Sleep(1);
		if (!armed || !threads[turn].handle)
			continue;
		for (int tries = again = 0; tries == 0 || (again && tries < TRIES); tries++) {
			Sleep(1 << tries >> 1); /* the thread needs a processor to leave a stub, and may wait for one */
			if (atomic_exchange(&code_changed, 0) && seedwalk_scan(handle)) /* step 2 */
				code_changed = 1;
			seedwalk_commit(handle); /* steps 2 and 8 */
			taken = take(threads + turn, &again);
		}
		if (taken)
			merge();
	}
	seedwalk_close(handle);
	return atomic_store(&stopped, 1), nothing != 0;
}

/* ---- called by the CLR ---- */
static result fine(void) { return OK; }
static uint32_t one(void) { return 1; }
static result code_came(void) { return atomic_store(&code_changed, 1), OK; } /* only noted */
static result query(void *self, const void *id, void **out) { return (void)id, *out = self, OK; }

static result initialize(void *self, void *unknown)
{
	static const uint8_t info2[16] = {0xcd, 0x35, 0x09, 0xcc, 0x18, 0xa5, 0x7d, 0x48, 0xb0, 0xbb, 0xa9, 0x32, 0x14, 0xe6, 0x54, 0x78};
	if (METHOD(unknown, 0, const void *, void **)(unknown, info2, &info) || !CreateThread(0, 0, life, 0, 0, 0))
		return (result)FAIL;
	while (!opened)
		Sleep(1);
	armed = opened > 0 && !METHOD(info, SET_EVENT_MASK, uint32_t)(info, EVENTS);
	return (void)self, armed ? OK : (result)FAIL;
}

static result shut_down(void *self)
{
	const char *path = getenv("OWN_PROTOCOL_OUT");
	stopping = 1;
	for (int ms = 0; !stopped && ms < 3000; ms++) /* a thread that the system has ended never says so */
		Sleep(1);
	FILE *f = path ? fopen(path, "w") : 0;
	if (f)
		fprintf(f, "samples %ld complete %ld frames %ld unmanaged %ld\n", samples, complete, frames, unmanaged), fclose(f);
	return (void)self, OK;
}

static void *slots[128] = {[0] = query, [1 ... 2] = one, [3] = initialize, [4] = shut_down, [5 ... 13] = fine, [14] = code_came, [15 ... 23] = fine, [24] = code_came,
			   [25 ... 29] = fine, [30] = destroyed, [31] = assigned, [32 ... 127] = fine}, *object = slots;
static result create(void *self, void *outer, const void *id, void **out) { return (void)self, (void)outer, (void)id, *out = &object, OK; }
static void *factory_slots[5] = {query, one, one, create, fine}, *factory = factory_slots;
__declspec(dllexport) result DllGetClassObject(const void *clsid, const void *id, void **out) { return (void)clsid, (void)id, *out = &factory, OK; }
__declspec(dllexport) result DllCanUnloadNow(void) { return 1; } /* Go stays */
