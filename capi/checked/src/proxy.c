/* The proxy's vtables.
 *
 * Each slot has its own function, which takes as many arguments as the longest method and passes all of them
 * on. Arguments of the profiling API are integers and pointers. A caller of a shorter method passes fewer
 * arguments. The others are then registers and words of the caller's own frame, which can be read. That
 * holds for System V, AAPCS64, and Windows x64. A structure by value
 * (EventPipeAddProviderToSession) is in those words, or behind a pointer.
 *
 * Sources: System V ABI AMD64 3.2.3; AAPCS64 6.4; Microsoft, "x64 calling convention"; dotnet/runtime
 * src/coreclr/inc/corprof.idl. */
#include <string.h>

#include "internal.h"
#include "table.h"

enum { QUERY = 0, ADD_REF = 1, RELEASE = 2, INITIALIZE = 3, SHUTDOWN = 4, INITIALIZE_FOR_ATTACH = 80, NOTIFICATION_ONLY = 97 };
enum { DO_STACK_SNAPSHOT = 36, EVERY_VERSION = 255 };

#define PARAMETERS word a1, word a2, word a3, word a4, word a5, word a6, word a7, word a8, word a9, word a10, word a11, word a12
#define ARGUMENTS a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12
#define PASSED a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]
typedef hresult (*any_fn)(void *, PARAMETERS);
typedef hresult (*query_fn)(void *, const void *, void **);
typedef uint32_t (*count_fn)(void *);

struct checked seedwalk_checked_state;

/* An object of the proxy. COM sees its first word. */
struct proxy {
	void **methods;
	void *real;
};
static struct proxy info_proxy, callback_proxy;

static uint32_t add_ref(struct proxy *p)
{
	if (p == &info_proxy)
		__atomic_fetch_add(&seedwalk_checked_state.references, 1, __ATOMIC_ACQ_REL);
	return METHOD(p->real, ADD_REF, count_fn)(p->real);
}

static uint32_t release(struct proxy *p)
{
	if (p == &info_proxy && __atomic_fetch_sub(&seedwalk_checked_state.references, 1, __ATOMIC_ACQ_REL) <= 0) {
		seedwalk_checked_say("Release", CHECK_OVER_RELEASED, 1);
		__atomic_fetch_add(&seedwalk_checked_state.references, 1, __ATOMIC_ACQ_REL);
		return 1;
	}
	return METHOD(p->real, RELEASE, count_fn)(p->real);
}

/* For a known interface, returns the proxy; for any other, the real object's answer. */
static hresult query(struct proxy *p, const uint8_t *id, void **made, const uint8_t (*ids)[16], size_t n)
{
	hresult hr = METHOD(p->real, QUERY, query_fn)(p->real, id, made);
	for (size_t i = 0; hr == 0 && made && *made == p->real && i < n; i++)
		if (memcmp(id, ids[i], sizeof ids[i]) == 0)
			*made = p;
	return hr;
}

static hresult query_info(struct proxy *p, const uint8_t *id, void **made)
{
	struct checked *c = &seedwalk_checked_state;
	enum { N = sizeof info_ids / sizeof *info_ids };
	hresult hr = query(p, id, made, info_ids, N);
	for (int i = c->version; hr == 0 && i < N; i++)
		if (memcmp(id, info_ids[i], sizeof info_ids[i]) == 0)
			c->version = i + 1;
	if (hr == 0 && made && *made == p)
		__atomic_fetch_add(&c->references, 1, __ATOMIC_ACQ_REL);
	return hr;
}
static hresult query_callback(struct proxy *p, const uint8_t *id, void **made) { return query(p, id, made, callback_ids, sizeof callback_ids / sizeof *callback_ids); }

/* The proxy calls the profiler's StackSnapshotCallback, and so knows how long a COR_PRF_FRAME_INFO is
 * valid. */
typedef hresult (*walk_fn)(word function, word ip, word frame, uint32_t size, void *context, void *client);
struct walk {
	walk_fn callback;
	void *client;
};

static hresult on_frame(word function, word ip, word frame, uint32_t size, void *context, void *client)
{
	struct thread *t = seedwalk_checked_thread();
	struct walk *w = client;
	word outer = t->frame;
	t->frame = frame, t->snapshot++;
	hresult hr = w->callback(function, ip, frame, size, context, w->client);
	t->frame = outer, t->snapshot--;
	return hr;
}

static hresult snapshot(struct proxy *p, struct thread *t, word *a)
{
	struct walk w = {(walk_fn)a[1], (void *)a[3]};
	word outer = t->target;
	a[1] = (word)on_frame, a[3] = (word)&w;
	__atomic_store_n(&t->target, a[0], __ATOMIC_RELEASE);
	hresult hr = METHOD(p->real, DO_STACK_SNAPSHOT, any_fn)(p->real, PASSED);
	__atomic_store_n(&t->target, outer, __ATOMIC_RELEASE);
	return hr;
}

static hresult info_call(struct proxy *p, unsigned slot, word *a)
{
	struct thread *t = seedwalk_checked_thread();
	unsigned outer = t->calling;
	t->reported = 0;
	if (!seedwalk_checked_before(slot, a))
		return REFUSED;
	__atomic_store_n(&t->calling, slot, __ATOMIC_RELEASE);
	hresult hr = slot == DO_STACK_SNAPSHOT ? snapshot(p, t, a) : METHOD(p->real, slot, any_fn)(p->real, PASSED);
	__atomic_store_n(&t->calling, outer, __ATOMIC_RELEASE);
	seedwalk_checked_after(slot, a, hr);
	return hr;
}

#define INFO(n) \
	static hresult info_##n(struct proxy *p, PARAMETERS) { return info_call(p, n, (word[]){ARGUMENTS}); }
INFO_SLOTS(INFO)

/* Initialize and InitializeForAttach get a checked info interface. */
static void *watch(word info, int attached)
{
	struct checked *c = &seedwalk_checked_state;
	c->info = (void *)info, c->attached = attached;
	info_proxy.real = c->info;
	seedwalk_checked_watch();
	return &info_proxy;
}

static hresult callback_call(struct proxy *p, unsigned slot, word *a)
{
	struct checked *c = &seedwalk_checked_state;
	if (slot == INITIALIZE || slot == INITIALIZE_FOR_ATTACH)
		a[0] = (word)watch(a[0], slot == INITIALIZE_FOR_ATTACH);
	struct thread *t = seedwalk_checked_thread();
	int owned = c->owner == t->serial; /* called from SuspendRuntime or ResumeRuntime */
	int locks = t->locks, stopped = t->stopped;
	unsigned outer = t->calling;
	seedwalk_checked_callback(slot, a[0], 0);
	seedwalk_checked_enter(slot);
	__atomic_store_n(&t->calling, 0, __ATOMIC_RELEASE);
	hresult hr = METHOD(p->real, slot, any_fn)(p->real, PASSED);
	__atomic_store_n(&t->calling, outer, __ATOMIC_RELEASE);
	if (!owned && c->owner == t->serial)
		seedwalk_checked_say("SuspendRuntime", CHECK_CALLBACK_SUSPENDED, 0);
	if (t->locks > locks)
		seedwalk_checked_say("lock", CHECK_LOCK_KEPT, 0);
	if (t->stopped > stopped)
		seedwalk_checked_say("suspend", CHECK_SUSPENDED_KEPT, 0);
	if (slot == SHUTDOWN && c->owner && c->owner != t->serial)
		seedwalk_checked_say("SuspendRuntime", CHECK_SHUTDOWN_SUSPENDED, 0);
	seedwalk_checked_callback(slot, a[0], 1);
	seedwalk_checked_leave();
	if (slot == SHUTDOWN)
		c->down = 1;
	if (slot == NOTIFICATION_ONLY && hr == 0 && a[0])
		c->notification = *(int *)a[0] != 0;
	if (slot == INITIALIZE || slot == INITIALIZE_FOR_ATTACH)
		c->initialized = 1;
	return hr;
}

#define CALLBACK(n) \
	static hresult callback_##n(struct proxy *p, PARAMETERS) { return callback_call(p, n, (word[]){ARGUMENTS}); }
CALLBACK_SLOTS(CALLBACK)

#define INFO_ENTRY(n) [n] = (void *)info_##n,
#define CALLBACK_ENTRY(n) [n] = (void *)callback_##n,
static void *info_methods[] = {(void *)query_info, (void *)add_ref, (void *)release, INFO_SLOTS(INFO_ENTRY)};
static void *callback_methods[] = {(void *)query_callback, (void *)add_ref, (void *)release, CALLBACK_SLOTS(CALLBACK_ENTRY)};

static int begin(seedwalk_report report, void *client)
{
	struct checked *c = &seedwalk_checked_state;
	if (c->report || !report)
		return 0;
	c->report = report, c->client = client;
	info_proxy.methods = info_methods, callback_proxy.methods = callback_methods;
	return 1;
}

void *seedwalk_checked_profiler(void *callback, seedwalk_report report, void *client)
{
	if (!callback || !begin(report, client))
		return NULL;
	seedwalk_checked_state.profiler = 1;
	callback_proxy.real = callback;
	return &callback_proxy;
}

void *seedwalk_checked_info(void *info, seedwalk_report report, void *client)
{
	if (!info || !begin(report, client))
		return NULL;
	seedwalk_checked_state.version = EVERY_VERSION, seedwalk_checked_state.references = 1;
	return watch((word)info, 0);
}
