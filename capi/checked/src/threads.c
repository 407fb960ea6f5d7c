/* State beyond one call: threads, ids that have ended, and a watch for waits that do not end.
 *
 * Records of threads are never freed, so the watch may read them at any time. */
#include "internal.h"
#include "table.h"

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#endif

enum { SUSPEND = 97 };
enum { THREAD_DESTROYED = 30 };
#define STATE (&seedwalk_checked_state)

struct thread seedwalk_checked_threads[THREADS];
int seedwalk_checked_patience = 3000 / LOOK_MS, seedwalk_checked_longest = 10000 / LOOK_MS;

/* The system's thread-local destructors report a thread's end. */
#ifdef _WIN32
static DWORD key = FLS_OUT_OF_INDEXES;
static void WINAPI on_end(void *t) { seedwalk_checked_ended(t); }
static void remember(struct thread *t) { FlsSetValue(key, t); }
#else
static pthread_key_t key;
static int has_key;
static void on_end(void *t) { seedwalk_checked_ended(t); }
static void remember(struct thread *t)
{
	if (has_key)
		pthread_setspecific(key, t);
}
#endif

/* The calling thread's record. Beyond THREADS a thread has a private one, which is not watched. */
struct thread *seedwalk_checked_thread(void)
{
	static _Thread_local struct thread *mine;
	static _Thread_local struct thread spare;
	static uint32_t serials;
	if (mine)
		return mine;
	uint32_t serial = __atomic_add_fetch(&serials, 1, __ATOMIC_ACQ_REL);
	for (int i = 0; i < THREADS && !mine; i++) {
		uint32_t free = 0;
		if (__atomic_compare_exchange_n(&seedwalk_checked_threads[i].serial, &free, serial, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			mine = &seedwalk_checked_threads[i];
	}
	mine = mine ? mine : &spare;
	mine->serial = serial;
	remember(mine);
	return mine;
}

/* Runs on the thread that ends. */
void seedwalk_checked_ended(struct thread *t)
{
	if (STATE->owner == t->serial)
		seedwalk_checked_say_of("SuspendRuntime", "the end of a thread", CHECK_OWNER_ENDED, 0);
	if (t->locks)
		seedwalk_checked_say_of("lock", "the end of a thread", CHECK_ENDED_WITH_LOCK, 0);
	if (t->stopped)
		seedwalk_checked_say_of("suspend", "the end of a thread", CHECK_ENDED_WITH_SUSPENDED, 0);
	t->depth = t->locks = t->stopped = t->snapshot = t->primed = t->let_in = t->unchanged = 0;
	t->calling = 0, t->target = t->frame = 0;
	__atomic_store_n(&t->serial, 0, __ATOMIC_RELEASE);
}

/* Ids that have ended: a table without chains, in which a newer id replaces an older one. */
enum { DEAD = 1024 };
static word dead[KINDS][DEAD];

static word *dead_entry(enum kind kind, word id) { return &dead[kind][(id >> 3 ^ id >> 13) % DEAD]; }

int seedwalk_checked_is_dead(enum kind kind, word id) { return __atomic_load_n(dead_entry(kind, id), __ATOMIC_ACQUIRE) == id; }

void seedwalk_checked_end(enum kind kind, word id, int ended)
{
	word *e = dead_entry(kind, id);
	if (ended)
		__atomic_store_n(e, id, __ATOMIC_RELEASE);
	else if (__atomic_load_n(e, __ATOMIC_ACQUIRE) == id)
		__atomic_store_n(e, 0, __ATOMIC_RELEASE);
}

/* The callbacks at which ids begin and end. */
static const struct {
	uint8_t begin, end;
} lives[KINDS] = {
	[THREAD_ID] = {29, THREAD_DESTROYED}, [MODULE_ID] = {13, 16}, [CLASS_ID] = {18, 21},
	[FUNCTION_ID] = {92, 94}, [ASSEMBLY_ID] = {9, 12}, [DOMAIN_ID] = {5, 8}};

void seedwalk_checked_callback(unsigned slot, word id, int returned)
{
	const struct thread *t = seedwalk_checked_thread();
	for (int k = 1; k < KINDS; k++) {
		if (!returned && lives[k].begin == slot)
			seedwalk_checked_end((enum kind)k, id, 0);
		if (returned && lives[k].end == slot)
			seedwalk_checked_end((enum kind)k, id, 1);
	}
	for (int i = 0; returned && slot == THREAD_DESTROYED && i < THREADS; i++)
		if (&seedwalk_checked_threads[i] != t && __atomic_load_n(&seedwalk_checked_threads[i].target, __ATOMIC_ACQUIRE) == id)
			return seedwalk_checked_say("DoStackSnapshot", CHECK_DESTROYED_IN_USE, 0);
}

/* Returns the rule that a thread breaks by staying in a callback while another suspends; 0: none. */
static int holds_up(const struct thread *t)
{
	int depth = __atomic_load_n(&t->depth, __ATOMIC_ACQUIRE);
	if (depth <= 0 || depth > DEPTH || t->unchanged < seedwalk_checked_patience || t->reported_at == t->seen || __atomic_load_n(&t->calling, __ATOMIC_ACQUIRE))
		return 0;
	unsigned in = t->slots[depth - 1];
	if (in == THREAD_DESTROYED)
		return CHECK_DESTROYED_WAITS;
	return in && !(callback_rows[in].flags & MAY_WAIT) ? CHECK_CALLBACK_WAITS : 0;
}

static void look(void)
{
	int suspending = 0;
	for (int i = 0; i < THREADS; i++) {
		struct thread *t = &seedwalk_checked_threads[i];
		uint32_t steps = __atomic_load_n(&t->steps, __ATOMIC_ACQUIRE), serial = __atomic_load_n(&t->serial, __ATOMIC_ACQUIRE);
		t->unchanged = serial && steps == t->seen ? t->unchanged + (t->unchanged < 1 << 30) : 0;
		t->seen = steps;
		suspending |= serial && t->unchanged >= seedwalk_checked_patience && __atomic_load_n(&t->calling, __ATOMIC_ACQUIRE) == SUSPEND;
		if (serial && serial == STATE->owner && t->unchanged == seedwalk_checked_longest && !t->calling)
			seedwalk_checked_say_of("ResumeRuntime", "the thread that suspended", CHECK_SUSPENSION_TOO_LONG, 0);
	}
	for (int i = 0; suspending && i < THREADS; i++) {
		struct thread *t = &seedwalk_checked_threads[i];
		int check = holds_up(t);
		if (check) {
			t->reported_at = t->seen;
			seedwalk_checked_say_of("SuspendRuntime", callback_rows[t->slots[t->depth - 1]].name, check, 0);
		}
	}
}

#ifdef _WIN32
static DWORD WINAPI watch(void *unused)
{
	(void)unused;
	for (;; Sleep(LOOK_MS))
		look();
	return 0;
}

/* The library stays loaded: its thread and its thread destructor are in it. */
void seedwalk_checked_watch(void)
{
	HMODULE self;
	GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN, (const char *)watch, &self);
	key = FlsAlloc(on_end);
	HANDLE t = CreateThread(NULL, 0, watch, NULL, 0, NULL);
	if (t)
		CloseHandle(t);
}
#else
static pthread_t watcher;
static int stopping;
static pid_t watching; /* the process with the watch: a forked one has none */

static void *watch(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&stopping, __ATOMIC_ACQUIRE)) {
		look();
		nanosleep(&(struct timespec){0, LOOK_MS * 1000000L}, NULL);
	}
	return NULL;
}

void seedwalk_checked_watch(void)
{
	sigset_t all, before;
	sigfillset(&all);
	has_key = pthread_key_create(&key, on_end) == 0;
	pthread_sigmask(SIG_SETMASK, &all, &before);
	watching = pthread_create(&watcher, NULL, watch, NULL) == 0 ? getpid() : 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The library may be unloaded. */
__attribute__((destructor)) static void unload(void)
{
	if (has_key)
		pthread_key_delete(key);
	__atomic_store_n(&stopping, 1, __ATOMIC_RELEASE);
	if (watching == getpid())
		pthread_join(watcher, NULL);
}
#endif
