/* Misuses of the profiling API on a simulated CLR. Each is made through the interfaces that the proxy
 * shows to a profiler and to the CLR, and must be reported with its method, place, rule, and remedy. Many
 * would hang or crash a real process.
 *
 * Output: "found N NAME", "MISSED N NAME: what was reported", "WRONG NAME: ...". */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

enum { GET_CODE_INFO = 5, THREAD_INFO = 12, CURRENT = 13, FUNCTION_INFO = 15, SET_MASK = 16, MODULE_INFO = 20, APP_DOMAIN_INFO = 25, ASSEMBLY_INFO = 26, FORCE_GC = 28,
	   SNAPSHOT = 36, FUNCTION_INFO2 = 38, CLASS_INFO2 = 41, FUNCTION_FROM_TOKEN = 44, OBJECT_SIZE = 10, DETACH = 58, ENTER3 = 63, ENUM_MODULES = 66, ENUM_THREADS = 71,
	   REJIT = 73, SUSPEND = 97, RESUME = 98, STOP_SESSION = 103, DESTROY_HANDLE = 109, FROM_HANDLE = 110 };
enum { INIT = 3, SHUTDOWN = 4, DOMAIN_END = 8, ASSEMBLY_END = 12, MODULE_START = 13, MODULE_FINISHED = 14, MODULE_END = 16, CLASS_END = 21, JIT = 23, DESTROYED = 30,
	   ASSIGNED = 31, SUSPENDED = 43, THROWN = 54, GC_STARTED = 73, DYNAMIC_END = 94 };
enum { THREAD = 0x7f0000001000, OTHER = 0x7f0000002000, OBJECT = 0x7f0000003000, MODULE = 0x7f0000004000 };
static const uint8_t info2[16] = {0xcd, 0x35, 0x09, 0xcc, 0x18, 0xa5, 0x7d, 0x48, 0xb0, 0xbb, 0xa9, 0x32, 0x14, 0xe6, 0x54, 0x78};
static const uint8_t info15[16] = {0x2d, 0x46, 0x46, 0xb4, 0x22, 0xbd, 0xdd, 0x41, 0x87, 0x2d, 0xdc, 0x71, 0x4c, 0x49, 0xeb, 0x56};

#define STATE seedwalk_checked_state
typedef hresult (*any_fn)(void *, word, word, word, word, word, word, word, word, word, word, word, word);

/* Reports of all threads. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char reported[4096];

static void report(const seedwalk_violation *v, void *client)
{
	(void)client;
	pthread_mutex_lock(&mutex);
	size_t n = strlen(reported);
	int whole = v->size == sizeof *v && v->method[0] && v->place[0] && v->text[0] && v->remedy[0];
	snprintf(reported + n, sizeof reported - n, " %s %s (%s)%s;", v->rule, v->method, v->place, whole ? "" : " NOT WHOLE");
	pthread_mutex_unlock(&mutex);
}

static int has(const char *text)
{
	pthread_mutex_lock(&mutex);
	int yes = strstr(reported, text) != NULL;
	pthread_mutex_unlock(&mutex);
	return yes;
}

static void judge(int n, const char *name, const char *want)
{
	if (has(want) && !has("NOT WHOLE"))
		printf("found %d %s\n", n, name);
	else
		printf("MISSED %d %s: %s\n", n, name, reported);
	reported[0] = 0;
}

/* The CLR. */
static _Thread_local word managed; /* the thread's id */
static hresult answer;             /* return value of all other methods */
static void (*inside)(void);       /* what happens inside a method */
static hresult clr_any(void)
{
	void (*f)(void) = inside;
	inside = NULL;
	if (f)
		f();
	return answer;
}
static hresult clr_current(void *self, uint64_t *id) { return (void)self, *id = managed, managed ? 0 : 0x80131355u; }
static hresult clr_snapshot(void *self, word thread, hresult (*f)(word, word, word, uint32_t, void *, void *), uint32_t flags, void *client)
{
	(void)self, (void)thread, (void)flags;
	clr_any();
	return f(1, 2, 0x1234, 0, NULL, client);
}
static hresult clr_query(void *self, const void *id, void **made) { return (void)id, *made = self, 0; }
static void *clr_methods[128];
static void *clr_info = clr_methods;

/* The profiler. */
static void *info;
static void (*in_callback)(void);
static hresult callback(void)
{
	void (*f)(void) = in_callback;
	in_callback = NULL;
	if (f)
		f();
	return 0;
}
static hresult on_initialize(void *self, void *unknown)
{
	(void)self;
	return METHOD(unknown, 0, hresult (*)(void *, const void *, void **))(unknown, info2, &info);
}
static void *callbacks[128];
static void *profiler = callbacks, *checked;

static hresult call(unsigned slot, word a, word b, word c) { return METHOD(info, slot, any_fn)(info, a, b, c, 0, 0, 0, 0, 0, 0, 0, 0, 0); }

/* A callback of the CLR. */
static void come(unsigned slot, word id, void (*f)(void))
{
	in_callback = f;
	METHOD(checked, slot, any_fn)(checked, id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	in_callback = NULL;
}
static void managed_come(unsigned slot, word id, void (*f)(void))
{
	managed = THREAD;
	come(slot, id, f);
	managed = 0;
}

static void *run(void *f) { return ((void (*)(void))f)(), NULL; }
static void on_thread(void (*f)(void))
{
	pthread_t t;
	if (pthread_create(&t, NULL, run, (void *)f) == 0)
		pthread_join(t, NULL);
}

static word room[512];
#define ROOM ((word)room)
static hresult plain(void) { return 0; }
static word kept;
static hresult keep(word f, word ip, word frame) { return (void)f, (void)ip, kept = frame, 0; }
static hresult resumes(void) { return call(RESUME, 0, 0, 0); }
static hresult nests(void) { return call(SNAPSHOT, THREAD, (word)plain, 0); }
static hresult reads(word f, word ip, word frame) { return (void)ip, call(FUNCTION_INFO2, f, frame, ROOM); }
static void suspend(void) { call(SUSPEND, 0, 0, 0); }
static void resume(void) { call(RESUME, 0, 0, 0); }
static void lock(void) { seedwalk_checked_lock(); }
static void walk(hresult (*f)(void)) { call(SNAPSHOT, THREAD, (word)f, 0); }
static void seeded(word bytes) { METHOD(info, SNAPSHOT, any_fn)(info, THREAD, (word)plain, 0, 0, ROOM, bytes, 0, 0, 0, 0, 0, 0); }
static void force(void) { call(FORCE_GC, 0, 0, 0); }
static void enum_threads(void) { call(ENUM_THREADS, ROOM, 0, 0); }
static void walk_other(void) { call(SNAPSHOT, OTHER, (word)plain, 0); }
static void stop_session(void) { call(STOP_SESSION, 0x77, 0, 0); }
static void lock_and_unlock(void) { seedwalk_checked_lock(), seedwalk_checked_unlock(); }
static void rejit(void) { call(REJIT, 0, 0, 0); }
static void get_info(void) { call(THREAD_INFO, THREAD, ROOM, 0); }
static void enter3(void) { call(ENTER3, 1, 2, 3); }
static void hold(void) { seedwalk_checked_suspended(); }
static void object(void) { call(OBJECT_SIZE, OBJECT, ROOM, 0); }
static void destroy(void) { come(DESTROYED, THREAD, NULL); }
static void destroy_elsewhere(void) { on_thread(destroy); }
static void resume_elsewhere(void) { on_thread(resume); }

/* 13: the sampler waits in SuspendRuntime, the finalizer in ThreadDestroyed. */
static int enough;
static void wait_enough(void)
{
	for (int i = 0; i < 500 && !__atomic_load_n(&enough, __ATOMIC_ACQUIRE); i++)
		usleep(10000);
}
static unsigned waits_in;
static void finalizer(void) { managed = OTHER, come(waits_in, OTHER, wait_enough), managed = 0; }
static void clashes(unsigned slot, const char *rule)
{
	pthread_t t;
	enough = 0, waits_in = slot, seedwalk_checked_patience = 10;
	pthread_create(&t, NULL, run, (void *)finalizer);
	usleep(50000);
	inside = wait_enough;
	pthread_t s;
	pthread_create(&s, NULL, run, (void *)suspend);
	for (int i = 0; i < 500 && !has(rule); i++)
		usleep(10000);
	__atomic_store_n(&enough, 1, __ATOMIC_RELEASE);
	pthread_join(s, NULL);
	pthread_join(t, NULL);
	STATE.owner = 0; /* the thread that held it has ended, which breaks another rule */
}

/* Misuses from the audit. */
static void first(void)
{
	suspend();
	call(SNAPSHOT, THREAD, (word)keep, 0);
	call(FUNCTION_INFO2, 1, kept, ROOM);
	resume();
	judge(1, "a frameInfo used after its callback", " frame-info GetFunctionInfo2 ");
	on_thread(suspend);
	judge(2, "a sampler that ends with the runtime suspended", " owner-ended SuspendRuntime ");
	come(SHUTDOWN, 0, NULL);
	STATE.down = 0;
	judge(3, "Shutdown returns with the runtime suspended", " shutdown-suspended SuspendRuntime (Shutdown)");
	on_thread(resume);
	judge(4, "ResumeRuntime by a new thread in the place of the old one", " resume-elsewhere ResumeRuntime ");
	STATE.owner = 0;
	managed_come(JIT, 1, force);
	judge(5, "ForceGC in a callback", " collect-in-callback ForceGC (JITCompilationStarted)");
	answer = 0x80131376u;
	call(SET_MASK, 0x10000225, 0, 0);
	answer = 0;
	judge(6, "MONITOR_GC after Initialize", " monitor-gc-late SetEventMask ");
	managed_come(GC_STARTED, 0, enum_threads);
	judge(7, "EnumThreads in GarbageCollectionStarted", " enumerate-in-collection EnumThreads (GarbageCollectionStarted)");
	managed_come(JIT, 1, walk_other);
	judge(8, "DoStackSnapshot of another thread in a callback", " unsuspended-walk DoStackSnapshot (JITCompilationStarted)");
	managed_come(DESTROYED, OTHER, lock);
	seedwalk_checked_unlock();
	judge(9, "a lock still held when the callback returns", " lock-kept lock (ThreadDestroyed)");
	suspend(), seeded(16), resume();
	judge(10, "a seed of 16 bytes", " seed-size DoStackSnapshot ");
	STATE.down = 1, get_info(), STATE.down = 0;
	judge(11, "a call after Shutdown", " after-shutdown GetThreadInfo ");
	call(FUNCTION_FROM_TOKEN, MODULE, 0x06000001, 0);
	judge(12, "GetFunctionFromTokenAndTypeArgs on a native thread", " type-on-native-thread GetFunctionFromTokenAndTypeArgs ");
	clashes(DESTROYED, " destroyed-waits SuspendRuntime (ThreadDestroyed)");
	judge(13, "ThreadDestroyed waits for SuspendRuntime", " destroyed-waits SuspendRuntime (ThreadDestroyed)");
}

static void second(void)
{
	lock(), suspend(), resume(), seedwalk_checked_unlock();
	judge(14, "a lock over SuspendRuntime", " lock-over-collection SuspendRuntime ");
	object();
	judge(15, "a kept ObjectID on a native thread", " object-moves GetObjectSize ");
	managed_come(SUSPENDED, 0, object);
	judge(16, "a kept ObjectID in RuntimeSuspendFinished", " object-moves GetObjectSize (RuntimeSuspendFinished)");
	walk(plain), reported[0] = 0, walk(plain);
	judge(17, "a walk without SuspendRuntime", " unsuspended-walk DoStackSnapshot ");
	on_thread(rejit);
	judge(18, "RequestReJIT on the sampler", " sampler-becomes-managed RequestReJIT ");
	managed_come(SUSPENDED, 0, rejit);
	judge(19, "RequestReJIT in RuntimeSuspendFinished", " triggers-in-notrigger RequestReJIT ");
	managed_come(THROWN, OBJECT, lock_and_unlock);
	judge(20, "a lock in ExceptionThrown", " wait-in-callback lock (ExceptionThrown)");
	managed_come(JIT, 1, suspend), STATE.owner = 0;
	judge(21, "SuspendRuntime in JITCompilationStarted", " callback-suspended SuspendRuntime (JITCompilationStarted)");
	managed_come(SHUTDOWN, 0, suspend), STATE.owner = 0, STATE.down = 0;
	judge(22, "SuspendRuntime in Shutdown", " managed-sampler SuspendRuntime (Shutdown)");
	managed_come(GC_STARTED, 0, stop_session);
	judge(23, "EventPipeStopSession in a collection", " triggers-in-notrigger EventPipeStopSession (GarbageCollectionStarted)");
	managed = THREAD, get_info(), managed = 0;
	judge(24, "GetThreadInfo on a managed thread outside callbacks", " outside-callback GetThreadInfo ");
}

/* Ids that have ended, and values that are not ids. */
static void ids(void)
{
	static const struct {
		unsigned end, method;
		const char *rule, *name;
	} rows[] = {
		{MODULE_END, MODULE_INFO, " stale-module GetModuleInfo ", "a ModuleID after ModuleUnloadFinished"},
		{CLASS_END, CLASS_INFO2, " stale-class GetClassIDInfo2 ", "a ClassID after ClassUnloadFinished"},
		{DYNAMIC_END, GET_CODE_INFO, " stale-function GetCodeInfo ", "a FunctionID after DynamicMethodUnloaded"},
		{ASSEMBLY_END, ASSEMBLY_INFO, " stale-assembly GetAssemblyInfo ", "an AssemblyID after AssemblyUnloadFinished"},
		{DOMAIN_END, APP_DOMAIN_INFO, " stale-domain GetAppDomainInfo ", "an AppDomainID after AppDomainShutdownFinished"},
	};
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		managed_come(rows[i].end, MODULE, NULL);
		call(rows[i].method, MODULE, ROOM, 0);
		judge(25 + (int)i, rows[i].name, rows[i].rule);
	}
	come(MODULE_START, MODULE, NULL);
	call(MODULE_INFO, MODULE, ROOM, 0);
	if (has("stale-module"))
		printf("WRONG a new module in the place of an old one: %s\n", reported);
	reported[0] = 0;
	call(DESTROY_HANDLE, OBJECT, 0, 0), call(FROM_HANDLE, OBJECT, ROOM, 0);
	judge(30, "a handle after DestroyHandle", " stale-handle GetObjectIDFromHandle ");
	stop_session(), reported[0] = 0, stop_session();
	judge(31, "a session stopped twice", " stale-session EventPipeStopSession ");
	call(FUNCTION_INFO, 0, ROOM, 0);
	judge(32, "GetFunctionInfo of FunctionID 0", " function-zero GetFunctionInfo ");
	call(THREAD_INFO, 4711, ROOM, 0);
	judge(33, "an id of the operating system as ThreadID", " not-a-thread-id GetThreadInfo ");
}

/* Walks, suspensions, and signals. */
static void third(void)
{
	suspend();
	walk(resumes);
	judge(34, "ResumeRuntime in the StackSnapshotCallback", " resume-in-snapshot ResumeRuntime (a StackSnapshotCallback)");
	walk(nests);
	judge(35, "DoStackSnapshot in the StackSnapshotCallback", " nested-snapshot DoStackSnapshot (a StackSnapshotCallback)");
	inside = destroy_elsewhere, walk(plain);
	come(29, THREAD, NULL);
	judge(36, "ThreadDestroyed returns while the thread is walked", " destroyed-in-use DoStackSnapshot (ThreadDestroyed)");
	memset(room, 0, sizeof room), seeded(sizeof room);
	judge(37, "a seed without registers", " seed-empty DoStackSnapshot ");
	inside = get_info, call(MODULE_INFO, MODULE, ROOM, 0);
	judge(38, "a call in a signal handler that interrupted a call", " call-in-signal GetThreadInfo ");
	seedwalk_checked_longest = 5;
	for (int i = 0; i < 300 && !has("suspension-too-long"); i++)
		usleep(10000);
	judge(39, "a suspension without an end", " suspension-too-long ResumeRuntime ");
	resume();
	clashes(ASSIGNED, " callback-waits SuspendRuntime (ThreadAssignedToOSThread)");
	judge(40, "ThreadAssignedToOSThread waits for the sampler", " callback-waits SuspendRuntime (ThreadAssignedToOSThread)");
	on_thread(lock);
	judge(41, "a thread that ends with a lock", " ended-with-lock lock ");
	on_thread(hold);
	judge(42, "a thread that ends and leaves another one suspended", " ended-with-suspended suspend ");
	come(DESTROYED, OTHER, hold), seedwalk_checked_resumed();
	judge(43, "a callback that leaves a thread suspended", " suspended-kept suspend (ThreadDestroyed)");
	managed_come(JIT, 1, enter3);
	judge(44, "GetFunctionEnter3Info in a callback", " elt-info GetFunctionEnter3Info (JITCompilationStarted)");
	suspend(), inside = resume_elsewhere, walk(plain), resume();
	judge(45, "ResumeRuntime on another thread during a walk", " resume-elsewhere ResumeRuntime ");
}

static void last(void)
{
	STATE.version = 2, enum_threads(), STATE.version = 15;
	judge(46, "a method of an interface that was not asked for", " interface-not-asked EnumThreads ");
	METHOD(info, 2, uint32_t (*)(void *))(info), METHOD(info, 2, uint32_t (*)(void *))(info), METHOD(info, 2, uint32_t (*)(void *))(info);
	judge(47, "Release more often than QueryInterface", " over-released Release ");
	call(SET_MASK, 0x10000204, 0, 0);
	managed_come(MODULE_FINISHED, MODULE, rejit);
	judge(48, "RequestReJIT without ENABLE_REJIT", " missing-bit RequestReJIT ");
	answer = 0x80131363u, managed_come(MODULE_FINISHED, MODULE, get_info), answer = 0;
	judge(49, "a call that the CLR refuses", " refused GetThreadInfo ");
	STATE.mask[0] |= 0x800, call(DETACH, 0, 0, 0);
	judge(50, "RequestProfilerDetach with CODE_TRANSITIONS", " detach-immutable RequestProfilerDetach ");
	get_info();
	judge(51, "a call after RequestProfilerDetach", " detaching GetThreadInfo ");
}

/* Calls of a correct profiler. */
static void right(void)
{
	managed_come(JIT, 1, get_info);
	come(29, THREAD, NULL);
	suspend();
	call(SNAPSHOT, THREAD, (word)reads, 1);
	room[0x98 / 8] = room[0xf8 / 8] = room[0x100 / 8] = room[0x108 / 8] = 1, seeded(sizeof room);
	resume();
	get_info();
	managed_come(DESTROYED, OTHER, lock_and_unlock);
	if (reported[0])
		printf("WRONG a right profiler: %s\n", reported);
	reported[0] = 0;
}

int main(void)
{
	for (int i = 0; i < 128; i++)
		clr_methods[i] = (void *)clr_any, callbacks[i] = (void *)callback;
	clr_methods[0] = (void *)clr_query, clr_methods[CURRENT] = (void *)clr_current, clr_methods[SNAPSHOT] = (void *)clr_snapshot;
	callbacks[0] = (void *)clr_query, callbacks[INIT] = (void *)on_initialize;
	checked = seedwalk_checked_profiler(&profiler, report, NULL);
	come(INIT, (word)&clr_info, NULL);
	METHOD(info, 0, hresult (*)(void *, const void *, void **))(info, info15, &info);
	STATE.initialized = 1;
	right();
	first();
	second();
	ids();
	third();
	last();
	return 0;
}
