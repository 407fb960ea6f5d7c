/* The event session. It starts where the runtime initializes the probe, never on a thread that samples,
 * because starting it runs managed code on the caller. A helper thread ends it when the tool asks for that
 * or is dead, and then detaches the profiler. */
#include "local.h"

typedef int32_t hresult;
typedef uint16_t wchar;

enum { INFO_QUERY = 0, INFO_CURRENT_THREAD = 13, INFO_DETACH = 58, INFO_MASK2 = 82, INFO_START = 101, INFO_STOP = 103, INFO_PROVIDER = 105 };
enum { MONITOR_EVENT_PIPE = 0x80, VERBOSE = 5 };

static void *info;           /* ICorProfilerInfo12 */
static uint64_t session;
static void *listener;       /* our object that receives the session's events */
static void *runtime;        /* the EVENTPIPE_PROVIDER of the runtime's own events */
static const wchar name[] = u"Microsoft-Windows-DotNETRuntime";

static void *method(void *object, int slot) { return (*(void ***)object)[slot]; }

int sw_is_ours(void *profiler) { return profiler == __atomic_load_n(&listener, __ATOMIC_RELAXED); }

/* sw_is_runtime checks the provider, because event ids are unique only within one: 10 is an allocation only
 * here. */
int sw_is_runtime(void *provider)
{
	void *known = __atomic_load_n(&runtime, __ATOMIC_RELAXED);
	wchar got[64];
	uint32_t n = 0;
	if (known)
		return provider == known;
	if (((hresult (*)(void *, void *, uint32_t, uint32_t *, wchar *))method(info, INFO_PROVIDER))(info, provider, 64, &n, got))
		return 0;
	for (int i = 0; i < (int)(sizeof name / sizeof *name); i++)
		if (got[i] != name[i])
			return 0;
	__atomic_store_n(&runtime, provider, __ATOMIC_RELAXED);
	return 1;
}

/* sw_current returns the runtime's Thread of the calling thread, 0 = none. */
uint64_t sw_current(void)
{
	uint64_t id = 0;
	return ((hresult (*)(void *, uint64_t *))method(info, INFO_CURRENT_THREAD))(info, &id) ? 0 : id;
}

static uint64_t keywords(uint32_t events)
{
	uint64_t k = 0;
	k |= events & SW_WAITS ? 0x40000000000 : 0;
	k |= events & SW_LOCKS ? 0x40000004000 : 0; /* with the waits inside locks */
	k |= events & SW_ALLOC ? 0x80000000001 : 0; /* samples on .NET 10, ticks before */
	k |= events & SW_EXCEPTION ? 0x8000 : 0;
	return k;
}

#ifndef _WIN32
/* Weak, as in profiler.c. */
extern int pthread_create(uint64_t *, const void *, void *(*)(void *), void *) __attribute__((weak));
extern int pthread_attr_init(void *) __attribute__((weak));
extern int pthread_attr_setstacksize(void *, size_t) __attribute__((weak));
extern int pthread_attr_setdetachstate(void *, int) __attribute__((weak));

/* finish waits until the tool asks for the end or is dead, and ends the session. */
static void *finish(void *header)
{
	struct sw_header *h = header;
	int64_t every[2] = {1, 0};
	void *mine = info; /* the next recording has its own */
	uint64_t my_session = session;
	enum { PATIENCE = 16 };
	__atomic_store_n(&h->helper, (uint32_t)sys3(NR_gettid, 0, 0, 0), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&h->leave, __ATOMIC_ACQUIRE) && sw_tool_lives(h, PATIENCE * h->stale))
		sys6(NR_futex, P(&h->leave), 0 /* FUTEX_WAIT */, 0, P(every), 0, 0);
	__atomic_store_n(&h->events, 0, __ATOMIC_RELEASE);
	((hresult (*)(void *, uint64_t))method(mine, INFO_STOP))(mine, my_session);
	__atomic_store_n(&h->session, 2, __ATOMIC_RELEASE); /* another recording's header may be here next */
	((hresult (*)(void *, uint32_t))method(mine, INFO_DETACH))(mine, 300);
	return 0;
}

enum { BEING_MADE = 0xffffffff }; /* not a thread ID: the helper is being created */

/* helper creates the thread that ends the session. That thread blocks all signals. */
static void helper(struct sw_header *h)
{
	uint64_t all = ~0ull, before = 0, id, attributes[32];
	if (!pthread_create || !pthread_attr_init || !pthread_attr_setstacksize || !pthread_attr_setdetachstate)
		return; /* the session ends with the process */
	pthread_attr_init(attributes);
	pthread_attr_setstacksize(attributes, 1536 << 10); /* managed code runs on it: the size of the runtime's own threads */
	pthread_attr_setdetachstate(attributes, 1);
	sys6(NR_rt_sigprocmask, 2 /* SIG_SETMASK */, P(&all), P(&before), 8, 0, 0);
	__atomic_store_n(&h->helper, BEING_MADE, __ATOMIC_RELEASE);
	if (pthread_create(&id, attributes, finish, h))
		__atomic_store_n(&h->helper, 0, __ATOMIC_RELEASE);
	sys6(NR_rt_sigprocmask, 2, P(&before), 0, 8, 0, 0);
}

/* sw_silence ends a session whose tool is dead. It returns 1 while the session is ending. */
int sw_silence(struct sw_header *h)
{
	if (!h || __atomic_load_n(&h->session, __ATOMIC_ACQUIRE) != 1 || !__atomic_load_n(&h->helper, __ATOMIC_ACQUIRE))
		return 0;
	__atomic_store_n(&h->leave, 1, __ATOMIC_RELEASE);
	sys3(NR_futex, P(&h->leave), 1 /* FUTEX_WAKE */, 1);
	return 1;
}

#else
/* finish waits until the tool asks for the end or is dead, and ends the session. */
static DWORD WINAPI finish(void *header)
{
	struct sw_header *h = header;
	enum { PATIENCE = 10, STEP = 20 };
	__atomic_store_n(&h->helper, own_tid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&h->leave, __ATOMIC_ACQUIRE) && sw_tool_lives(h, PATIENCE * h->stale))
		Sleep(STEP);
	__atomic_store_n(&h->events, 0, __ATOMIC_RELEASE);
	((hresult (*)(void *, uint64_t))method(info, INFO_STOP))(info, session);
	__atomic_store_n(&h->session, 2, __ATOMIC_RELEASE);
	return 0;
}

static void helper(struct sw_header *h)
{
	HANDLE thread = CreateThread(0, 0, finish, h, 0, 0);
	if (thread)
		CloseHandle(thread);
}

#endif

int sw_listen(void *profiler, void *any)
{
	static const uint32_t iid[4] = {0x27b24ccd, 0x47c51cb1, 0x1998ee96, 0x5909c30d};
	struct sw_header *h = sw_shared;
	struct { const wchar *name; uint64_t keywords; uint32_t level, pad; const wchar *filter; } config = {name, keywords(h->events), VERBOSE, 0, 0};
	void *found = 0;
	hresult e = ((hresult (*)(void *, const void *, void **))method(any, INFO_QUERY))(any, iid, &found);
	sw_forget();
	runtime = 0;
	info = found;
	__atomic_store_n(&listener, profiler, __ATOMIC_RELEASE);
	if (!e)
		e = ((hresult (*)(void *, uint32_t, uint32_t))method(info, INFO_MASK2))(info, 0, MONITOR_EVENT_PIPE);
	if (!e)
		e = ((hresult (*)(void *, uint32_t, void *, int, uint64_t *))method(info, INFO_START))(info, 1, &config, 0, &session);
	h->failed = (uint32_t)e;
	if (e) {
		h->events = 0;
		return -1;
	}
	__atomic_store_n(&h->session, 1, __ATOMIC_RELEASE);
	helper(h);
	return 0;
}
