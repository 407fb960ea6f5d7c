/* A profiler that breaks the rules of the profiling API one by one, and writes what the checking proxy
 * reported. Misuse.cs drives it.
 *
 * Lines of the file MISUSE_OUT: "found NAME RULE", "MISSED NAME RULE", and "WRONG RULE METHOD PLACE" for
 * reports about correct calls. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include "wine/context.h"
#define EXPORT __declspec(dllexport)
#else
#include <pthread.h>
#define EXPORT __attribute__((visibility("default")))
#endif

enum { THREAD_INFO = 12, FORCE_GC = 28, SET_MASK = 16, GET_MASK = 6, GET_MODULE_INFO = 20, IL_BODY = 22, SNAPSHOT = 36, HOOKS = 17, IN_PROC = 33, OBJECT_SIZE = 10,
	   CLASS_FROM_TOKEN = 4, OBJECT_GENERATION = 55, ENUM_MODULES = 66, SUSPEND = 97, RESUME = 98, STOP_SESSION = 103, FROM_IP = 7, CURRENT = 13, GET_HANDLE = 9,
	   FUNCTION_INFO = 15, FUNCTION_INFO2 = 38, FUNCTION_FROM_TOKEN = 44, ENTER3 = 63, REJIT = 73, RUNTIME_INFO = 67 };
enum { MASK = 0x10010224 };

static const uint8_t info10[16] = {0x52, 0x51, 0x1b, 0x2f, 0x69, 0xc8, 0xc9, 0x40, 0xaa, 0x5f, 0x3a, 0xbe, 0x02, 0x6b, 0xd7, 0x20};
static void *info;
static FILE *out;
static word target, gone, module;
static int armed;

/* What was reported on this thread since try_it or right began. */
static _Thread_local char reported[1024];

static void report(const seedwalk_violation *v, void *client)
{
	(void)client;
	size_t n = strlen(reported);
	snprintf(reported + n, sizeof reported - n, " %s %s;", v->rule, v->method);
}

typedef hresult (*any_fn)(void *, word, word, word, word, word, word, word, word, word, word, word, word);

static hresult call(unsigned slot, word a, word b, word c) { return METHOD(info, slot, any_fn)(info, a, b, c, 0, 0, 0, 0, 0, 0, 0, 0, 0); }

static void expect(const char *name, const char *rule)
{
	char word_of[64];
	snprintf(word_of, sizeof word_of, " %s ", rule);
	fprintf(out, "%s %s %s\n", strstr(reported, word_of) ? "found" : "MISSED", name, rule);
	reported[0] = 0;
}

static void right(const char *name)
{
	if (reported[0])
		fprintf(out, "WRONG %s:%s\n", name, reported);
	reported[0] = 0;
}

static word room[64];
#define ROOM ((word)room)

#ifdef _WIN32
static DWORD WINAPI run(void *f) { return ((void (*)(void))f)(), 0; }
static void on_thread(void (*f)(void))
{
	HANDLE t = CreateThread(NULL, 0, run, (void *)f, 0, NULL);
	WaitForSingleObject(t, INFINITE);
	CloseHandle(t);
}
#else
static void *run(void *f) { return ((void (*)(void))f)(), NULL; }
static void on_thread(void (*f)(void))
{
	pthread_t t;
	if (pthread_create(&t, NULL, run, (void *)f) == 0)
		pthread_join(t, NULL);
}
#endif

/* StackSnapshotCallbacks. */
static hresult plain(void) { return 0; }
static hresult locks(void)
{
	seedwalk_checked_lock();
	seedwalk_checked_unlock();
	expect("lock in the StackSnapshotCallback", "lock-in-snapshot");
	return 1;
}
static hresult calls(void)
{
	call(IL_BODY, 0, 0, 0);
	expect("GetILFunctionBody in the StackSnapshotCallback", "call-in-snapshot");
	return 1;
}

static word kept;
static hresult keeps(word function, word ip, word frame)
{
	(void)ip, kept = frame;
	if (function) {
		call(FUNCTION_INFO2, function, frame, ROOM);
		right("GetFunctionInfo2 in the StackSnapshotCallback");
	}
	return 0;
}
static hresult resumes_inside(void)
{
	call(RESUME, 0, 0, 0);
	expect("ResumeRuntime in the StackSnapshotCallback", "resume-in-snapshot");
	call(SNAPSHOT, target, (word)plain, 0);
	expect("DoStackSnapshot in the StackSnapshotCallback", "nested-snapshot");
	return 1;
}

static void suspend(void)
{
	hresult hr;
	do
		hr = call(SUSPEND, 0, 0, 0);
	while (hr == 0x80131388u);
}

static int walked;
static hresult counts(void) { return walked = 1; }

/* suspend_walkable suspends until the target can be walked: now and then the runtime stops it where
 * DoStackSnapshot reports no frame. */
static void suspend_walkable(void)
{
	for (int i = 0; i < 1000; i++) {
		suspend();
		call(SNAPSHOT, target, (word)counts, 0);
		if (walked)
			return;
		call(RESUME, 0, 0, 0);
	}
}

static void elsewhere(void)
{
	call(SUSPEND, 0, 0, 0);
	expect("SuspendRuntime while another thread holds it", "suspended-elsewhere");
	call(STOP_SESSION, 0, 0, 0);
	expect("EventPipeStopSession while another thread holds the runtime", "suspended-elsewhere");
}

static void resumes(void)
{
	call(RESUME, 0, 0, 0);
	expect("ResumeRuntime on another thread", "resume-elsewhere");
}

static void sampler(void)
{
	call(CLASS_FROM_TOKEN, module, 0x02000002, ROOM);
	expect("GetClassFromToken on a native thread", "type-on-native-thread");
	call(FUNCTION_FROM_TOKEN, module, 0x06000001, 0);
	expect("GetFunctionFromTokenAndTypeArgs on a native thread", "type-on-native-thread");
	call(THREAD_INFO, 4711, ROOM, 0);
	expect("an id of the operating system as ThreadID", "not-a-thread-id");
	call(FUNCTION_INFO, 0, ROOM, 0);
	expect("GetFunctionInfo of FunctionID 0", "function-zero");
	call(ENTER3, 0x1000, 0x1000, 0);
	expect("GetFunctionEnter3Info outside the hook", "elt-info");
	call(RUNTIME_INFO, 0, 0, 0);
	right("GetRuntimeInformation");
	call(REJIT, 0, 0, 0);
	expect("RequestReJIT without ENABLE_REJIT", "missing-bit");
	call(RESUME, 0, 0, 0);
	expect("ResumeRuntime of nothing", "resume-without-suspend");
	call(SNAPSHOT, target, (word)plain, 0);
	right("priming");
#ifndef _WIN32
	call(SNAPSHOT, target, (word)plain, 0);
	expect("DoStackSnapshot of a running thread", "unsuspended-walk");
#endif
	call(SNAPSHOT, 0, 0, 0);
	expect("DoStackSnapshot without a callback", "null-pointer");
	call(SNAPSHOT, 0, (word)plain, 2);
	expect("DoStackSnapshot with X86_OPTIMIZED", "snapshot-flags");
	call(OBJECT_GENERATION, ROOM, 0, 0);
	expect("GetObjectGeneration without a pointer", "null-pointer");
	call(OBJECT_SIZE, 0, ROOM, 0);
	expect("GetObjectSize on a native thread", "object-moves");
	seedwalk_checked_lock();
	call(ENUM_MODULES, ROOM, 0, 0);
	expect("EnumModules under a lock", "lock-over-collection");
	seedwalk_checked_unlock();
	seedwalk_checked_unlock();
	expect("unlock of nothing", "unbalanced");
	seedwalk_checked_suspended();
	call(GET_MODULE_INFO, module, 0, 0);
	expect("GetModuleInfo with a thread suspended", "lock-of-suspended");
	seedwalk_checked_lock();
	expect("a lock with a thread suspended", "lock-under-suspension");
	seedwalk_checked_unlock();
	seedwalk_checked_suspended();
	expect("two targets", "two-targets");
	seedwalk_checked_resumed();
	seedwalk_checked_resumed();
	seedwalk_checked_resumed();
	expect("resume twice", "resume-twice");
	suspend_walkable();
	right("a walk");
	call(SUSPEND, 0, 0, 0);
	expect("SuspendRuntime twice", "nested-suspension");
	call(ENUM_MODULES, ROOM, 0, 0);
	expect("EnumModules by who has suspended", "thread-store-lock");
	call(FORCE_GC, 0, 0, 0);
	expect("ForceGC by who has suspended", "hangs-under-suspension");
	METHOD(info, SNAPSHOT, any_fn)(info, target, (word)plain, 0, 0, ROOM, 16, 0, 0, 0, 0, 0, 0);
	expect("a seed of 16 bytes", "seed-size");
	call(SNAPSHOT, target, (word)keeps, 0);
	call(FUNCTION_INFO2, 0x1000, kept | 8, ROOM);
	expect("a frameInfo used after its callback", "frame-info");
	call(SNAPSHOT, target, (word)resumes_inside, 0);
	call(SNAPSHOT, target, (word)locks, 0);
	call(SNAPSHOT, target, (word)calls, 0);
	on_thread(elsewhere);
	on_thread(resumes);
	call(RESUME, 0, 0, 0);
	call(STOP_SESSION, 0, 0, 0);
	expect("EventPipeStopSession on the sampler", "sampler-becomes-managed");
}

/* A sampler that follows the rules. */
static void proper(void)
{
	for (int i = 0; i < 20; i++) {
		suspend();
		call(SNAPSHOT, target, (word)plain, 1);
		call(FROM_IP, (word)proper, ROOM, 0);
		call(RESUME, 0, 0, 0);
	}
	call(THREAD_INFO, target, ROOM, 0);
	call(GET_MASK, ROOM, 0, 0);
	seedwalk_checked_suspended();
	call(FROM_IP, (word)proper, ROOM, 0);
	seedwalk_checked_resumed();
	right("a sampler");
}

/* The program's part. */
EXPORT void misuse_managed(void)
{
	reported[0] = 0;
	call(CURRENT, ROOM, 0, 0);
	call(FROM_IP, (word)proper, ROOM, 0);
	right("asynchronous calls on a managed thread");
	call(THREAD_INFO, target, ROOM, 0);
	expect("GetThreadInfo outside callbacks", "outside-callback");
	call(HOOKS, 0, 0, 0);
	expect("SetEnterLeaveFunctionHooks after Initialize", "init-only");
	call(IN_PROC, 0, ROOM, 0);
	expect("BeginInprocDebugging", "not-implemented");
	call(SET_MASK, MASK | 0x800, 0, 0);
	expect("CODE_TRANSITIONS after Initialize", "immutable-bit");
	suspend();
	expect("SuspendRuntime on a managed thread", "managed-sampler");
	call(RESUME, 0, 0, 0);
	reported[0] = 0;
	seedwalk_checked_suspended();
	expect("SuspendThread on a managed thread", "managed-sampler");
	seedwalk_checked_resumed();
}
EXPORT void misuse_native(void) { on_thread(sampler); }
EXPORT void misuse_proper(void) { on_thread(proper); }
EXPORT void misuse_arm(int on) { __atomic_store_n(&armed, on, __ATOMIC_RELEASE); }
static void of_gone(void)
{
	call(THREAD_INFO, gone, ROOM, 0);
	expect("GetThreadInfo of a destroyed thread", "thread-destroyed");
	call(SNAPSHOT, gone, (word)plain, 0);
	expect("DoStackSnapshot of a destroyed thread", "thread-destroyed");
}
EXPORT int misuse_gone(void)
{
	if (__atomic_load_n(&gone, __ATOMIC_ACQUIRE))
		on_thread(of_gone);
	return gone != 0;
}
EXPORT void misuse_target(void)
{
	call(CURRENT, (word)&target, 0, 0);
	right("GetCurrentThreadID");
}
EXPORT void misuse_end(void) { fclose(out); }

static hresult nothing(void) { return 0; }

static hresult on_initialize(void *self, void *unknown)
{
	(void)self;
	typedef hresult (*query_fn)(void *, const void *, void **);
	out = fopen(getenv("MISUSE_OUT"), "w");
	if (!out || METHOD(unknown, 0, query_fn)(unknown, info10, &info))
		return 0x80004005u;
	setvbuf(out, NULL, _IONBF, 0);
	call(SET_MASK, MASK & ~0x10000000, 0, 0);
	right("SetEventMask");
	call(SNAPSHOT, 0, (word)plain, 0);
	expect("DoStackSnapshot without its bit", "mask-without-snapshot");
	call(SET_MASK, MASK, 0, 0);
	right("SetEventMask again");
	call(OBJECT_GENERATION, ROOM, ROOM, 0);
	expect("GetObjectGeneration in Initialize", "crashes-in-initialize");
	call(SUSPEND, 0, 0, 0);
	expect("SuspendRuntime in Initialize", "too-early");
	return 0;
}

static hresult on_module(void *self, word id)
{
	(void)self;
	module = module ? module : id;
	call(ENUM_MODULES, ROOM, 0, 0);
	seedwalk_checked_lock();
	seedwalk_checked_unlock();
	right("EnumModules and a lock in ModuleLoadFinished");
	call(FORCE_GC, 0, 0, 0);
	expect("ForceGC in ModuleLoadFinished", "collect-in-callback");
	word me = 0;
	call(CURRENT, (word)&me, 0, 0);
	call(SNAPSHOT, me, (word)plain, 0);
	right("DoStackSnapshot of the own thread in a callback");
#ifndef _WIN32
	if (target && target != me) {
		call(SNAPSHOT, target, (word)plain, 0);
		expect("DoStackSnapshot of another thread in a callback", "unsuspended-walk");
	}
#endif
	return 0;
}

static hresult on_assigned(void)
{
	static int once;
	if (__atomic_exchange_n(&once, 1, __ATOMIC_ACQ_REL))
		return 0;
	seedwalk_checked_lock();
	seedwalk_checked_unlock();
	expect("a lock in ThreadAssignedToOSThread", "wait-in-callback");
	return 0;
}

static hresult on_destroyed(void *self, word id)
{
	(void)self;
	seedwalk_checked_lock();
	seedwalk_checked_unlock();
	right("waiting in ThreadDestroyed");
	if (__atomic_load_n(&armed, __ATOMIC_ACQUIRE) == 1)
		__atomic_store_n(&gone, id, __ATOMIC_RELEASE);
	return 0;
}

static hresult on_suspend(void)
{
	if (__atomic_load_n(&armed, __ATOMIC_ACQUIRE) != 2 || seedwalk_checked_state.owner)
		return 0;
	__atomic_store_n(&armed, 0, __ATOMIC_RELEASE);
	call(THREAD_INFO, target, ROOM, 0);
	right("GetThreadInfo in RuntimeSuspendStarted");
	call(ENUM_MODULES, ROOM, 0, 0);
	expect("EnumModules in RuntimeSuspendStarted", "triggers-in-notrigger");
	return 0;
}

static hresult on_only(void *self, int *yes) { return (void)self, *yes = 0, 0; }

static hresult query(void *self, const void *id, void **made) { return (void)id, *made = self, 0; }

static void *callbacks[128];
static void *profiler = callbacks;

static hresult create(void *self, void *outer, const void *id, void **made)
{
	(void)self, (void)outer, (void)id;
	for (size_t i = 0; i < sizeof callbacks / sizeof *callbacks; i++)
		callbacks[i] = (void *)nothing;
	callbacks[0] = (void *)query, callbacks[3] = (void *)on_initialize, callbacks[14] = (void *)on_module;
	callbacks[30] = (void *)on_destroyed, callbacks[31] = (void *)on_assigned, callbacks[42] = (void *)on_suspend, callbacks[97] = (void *)on_only;
	*made = seedwalk_checked_profiler(&profiler, report, NULL);
	return *made ? 0 : 0x80004005u;
}

static void *factory_methods[] = {(void *)query, (void *)nothing, (void *)nothing, (void *)create, (void *)nothing};
static void *factory = factory_methods;

EXPORT hresult DllGetClassObject(const void *class_id, const void *id, void **made) { return (void)class_id, (void)id, *made = &factory, 0; }
EXPORT hresult DllCanUnloadNow(void) { return 1; }

#ifdef _WIN32
BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved)
{
	(void)self, (void)reserved;
	if (reason == DLL_PROCESS_ATTACH)
		wine_patch(GetModuleHandleA(NULL));
	return TRUE;
}
#endif
