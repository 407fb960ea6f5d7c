/* The rules that the checking proxy knows, from the table of clr/api, and what it
 * remembers of threads to check them.
 *
 * Nothing here waits or allocates: it runs wherever a profiler calls the CLR. */
#include "internal.h"
#include "table.h"

enum { FORCE_GC = 28, SET_EVENT_MASK = 16, DO_STACK_SNAPSHOT = 36, REQUEST_DETACH = 58, SET_EVENT_MASK2 = 82, SUSPEND = 97, RESUME = 98, CURRENT_THREAD = 13 };
enum { GET_HANDLE = 9, GET_THREAD_INFO = 12, GET_THREAD_CONTEXT = 32, GET_THREAD_APP_DOMAIN = 48 };
enum { CLASS_FROM_OBJECT = 3, OBJECT_SIZE = 10, ARRAY_INFO = 46, GENERATION_BOUNDS = 54, OBJECT_GENERATION = 55, CLAUSE_INFO = 56, OBJECT_SIZE2 = 80, REFERENCES = 93, IS_FROZEN = 94, CREATE_HANDLE = 108 };
enum { INITIALIZE = 3, INITIALIZE_FOR_ATTACH = 80, RUNTIME_RESUME_STARTED = 45 };
static const uint32_t ENABLE_STACK_SNAPSHOT = 0x10000000;

#define STATE (&seedwalk_checked_state)

struct thread *seedwalk_checked_thread(void)
{
	static _Thread_local struct thread t;
	return &t;
}

/* The callback that the thread is in, 0: none. */
static unsigned callback_of(const struct thread *t)
{
	return t->depth > 0 ? t->slots[(t->depth <= DEPTH ? t->depth : DEPTH) - 1] : 0;
}

/* Asks the CLR, which takes no lock for it and lets everybody in. */
static int is_managed(const struct thread *t)
{
	uint64_t id = 0;
	if (!STATE->info || t->let_in)
		return 0;
	return METHOD(STATE->info, CURRENT_THREAD, hresult (*)(void *, uint64_t *))(STATE->info, &id) == 0;
}

static const char *place_of(const struct thread *t)
{
	unsigned in = callback_of(t);
	if (t->snapshot)
		return "a StackSnapshotCallback";
	if (in)
		return callback_rows[in].name;
	return is_managed(t) ? "a managed thread outside callbacks" : "a thread of the profiler's";
}

void seedwalk_checked_say(const char *method, const char *rule, const char *text, int fatal)
{
	seedwalk_violation v = {sizeof v, fatal, method, place_of(seedwalk_checked_thread()), rule, text};
	STATE->report(&v, STATE->client);
}

/* Ids of threads whose ThreadDestroyed has returned: a table without chains, in
 * which a newer id takes the place of an older one. What falls out is forgotten. */
enum { DEAD = 4096 };
static word dead[DEAD];

static word *dead_entry(word id) { return &dead[(id >> 4 ^ id >> 16) % DEAD]; }

void seedwalk_checked_destroyed(word id, int yes)
{
	word *e = dead_entry(id);
	if (yes)
		__atomic_store_n(e, id, __ATOMIC_RELEASE);
	else if (__atomic_load_n(e, __ATOMIC_ACQUIRE) == id)
		__atomic_store_n(e, 0, __ATOMIC_RELEASE);
}

/* One call that is about to be made. */
struct call {
	const struct info_row *m;
	const struct thread *t;
	unsigned slot, in;
	const word *a;
	int go; /* it may be made */
};

static void say(struct call *c, const char *rule, const char *text) { seedwalk_checked_say(c->m->name, rule, text, 0); }

/* The call is not made. */
static void stop(struct call *c, const char *rule, const char *text)
{
	if (c->go)
		seedwalk_checked_say(c->m->name, rule, text, 1);
	c->go = 0;
}

/* Where the method may be called from. */
static void check_gate(struct call *c)
{
	int gate = c->m->gate, flags = c->m->flags, in_init = c->in == INITIALIZE || c->in == INITIALIZE_FOR_ATTACH;
	int known = STATE->profiler || c->in;
	if (known && !c->in && (gate == SYNC || gate == SYNC_GC) && is_managed(c->t))
		say(c, "outside-callback", "a managed thread may call it inside a callback only: 80131363");
	if (c->in && !(callback_rows[c->in].flags & TRIGGERS) && (gate == SYNC_GC || flags & NOTRIGGER_REFUSES || (flags & GC && gate != OWN)))
		say(c, "triggers-in-notrigger", "it may start a collection where none may be: 80131363, and on a native thread of a server collection nothing refuses it");
	if (c->in == RUNTIME_RESUME_STARTED && flags & GC)
		say(c, "triggers-while-suspended", "the runtime still stands, and the CLR lets the call in");
	if (gate == INIT_ONLY && STATE->initialized)
		say(c, "init-only", "it is for Initialize: 80131356");
	if (gate == STUB)
		say(c, "not-implemented", "no CLR implements it: E_NOTIMPL");
	if (in_init && flags & CRASHES_IN_INIT)
		stop(c, "crashes-in-initialize", "it does not ask whether there is a heap: the process ends");
	if (in_init && (c->slot == SUSPEND || c->slot == RESUME || c->slot == DO_STACK_SNAPSHOT))
		say(c, "too-early", "the runtime has not started: 80131371 or 80131360");
	if (STATE->detaching)
		say(c, "detaching", "the profiler has asked to be detached: 80131367, and its code may go at any moment");
	if (STATE->attached && flags & NO_ATTACH)
		say(c, "attached", "not for an attached profiler: 8013136F");
	if (STATE->notification && flags & NO_NOTIFY)
		say(c, "notification", "not for a notification profiler: E_INVALIDARG");
}

/* What the thread must not be. */
static void check_thread(struct call *c)
{
	int native = !c->in && !is_managed(c->t);
	if (native && c->m->flags & KILLS && !c->t->let_in)
		stop(c, "type-on-native-thread", "a type that is not loaded yet ends the process on a thread without a runtime Thread");
	if (c->slot == SUSPEND && !native)
		say(c, "managed-sampler", "only a thread that never ran managed code may suspend: a collection stops any other while it holds its target");
	if (native && c->m->flags & BECOMES && (c->slot != FORCE_GC || c->t->stopped))
		say(c, "sampler-becomes-managed", "it makes the thread a managed one for good: do it on another thread than the sampler");
}

/* Suspension: of the runtime by this thread or another, of a thread by this one. */
static void check_suspension(struct call *c)
{
	int own = STATE->owner == c->t, other = STATE->owner && !own;
	if (c->t->stopped && (c->m->flags & NO_THREAD))
		say(c, "lock-of-suspended", "it can wait for a lock that the suspended thread owns: a deadlock");
	if (c->slot == SUSPEND && own)
		stop(c, "nested-suspension", "suspensions do not nest: it answers S_OK, and after the first ResumeRuntime threads go round for ever where they return to managed code");
	if (other && (c->slot == SUSPEND || c->m->flags & OTHER_HANGS))
		stop(c, "suspended-elsewhere", "it waits until the other thread resumes the runtime");
	if (c->slot == RESUME && !STATE->owner)
		say(c, "resume-without-suspend", "nothing is suspended: 80131363");
	if (c->slot == RESUME && other)
		stop(c, "resume-elsewhere", "the ThreadStore lock stays with the thread that suspended: .NET 10 hangs");
	if (own && c->m->flags & OWNER_HANGS)
		stop(c, "hangs-under-suspension", "it waits for a collection that cannot begin while the runtime is suspended");
	else if (own && c->m->flags & NO_OWNER)
		say(c, "thread-store-lock", "the thread owns the ThreadStore lock while it holds the runtime: 80131363");
}

/* Locks of the profiler's, and what is called while CLR code waits for the answer. */
static void check_locks(struct call *c)
{
	if (c->t->locks && c->m->flags & GC)
		say(c, "lock-over-collection", "a collection waits for threads that wait for your lock: a deadlock");
	if (c->t->snapshot && (c->m->flags & NO_THREAD))
		say(c, "call-in-snapshot", "the walked thread stands suspended: only methods that wait for no lock");
}

static void check_walk(struct call *c)
{
#ifndef _WIN32
	if (c->a[0] && STATE->owner != c->t && c->t->primed) /* the first is asked to be of a running thread */
		say(c, "unsuspended-walk", "another thread is walked under SuspendRuntime only: E_NOTIMPL");
#endif
	if (STATE->has_mask && !(STATE->mask[0] & ENABLE_STACK_SNAPSHOT))
		say(c, "mask-without-snapshot", "the event mask lacks ENABLE_STACK_SNAPSHOT: 80131374");
	if ((uint32_t)c->a[2] & ~1u)
		say(c, "snapshot-flags", "only COR_PRF_SNAPSHOT_REGISTER_CONTEXT is known here: E_INVALIDARG");
	if (!c->a[1])
		stop(c, "null-pointer", "it calls the callback without a look at it");
}

/* Arguments that the CLR believes. */
static void check_arguments(struct call *c)
{
	switch (c->slot) {
	case DO_STACK_SNAPSHOT:
		check_walk(c);
		/* fall through */
	case GET_HANDLE: case GET_THREAD_INFO: case GET_THREAD_CONTEXT: case GET_THREAD_APP_DOMAIN:
		if (c->a[0] && __atomic_load_n(dead_entry(c->a[0]), __ATOMIC_ACQUIRE) == c->a[0])
			stop(c, "thread-destroyed", "the id's ThreadDestroyed has returned: the process ends with 8013135e, or reads what is no thread any more");
		break;
	case CLASS_FROM_OBJECT: case OBJECT_SIZE: case ARRAY_INFO: case OBJECT_SIZE2: case REFERENCES: case CREATE_HANDLE:
		if (STATE->profiler && !(c->in && callback_rows[c->in].flags & OBJECTS))
			say(c, "object-moves", "a collection may move the object meanwhile, and the CLR's own guard is often open");
		break;
	case GENERATION_BOUNDS: case OBJECT_GENERATION: case IS_FROZEN:
		if (!c->a[1])
			stop(c, "null-pointer", "it writes through the pointer without a look at it");
		break;
	case CLAUSE_INFO:
		if (!c->a[0])
			stop(c, "null-pointer", "it writes through the pointer without a look at it");
		break;
	}
}

/* Bits of the event mask that cannot change any more, or are not for this profiler. */
static void check_mask(struct call *c)
{
	uint32_t mask[2] = {(uint32_t)c->a[0], c->slot == SET_EVENT_MASK2 ? (uint32_t)c->a[1] : STATE->mask[1]};
	for (const struct mask_row *b = mask_rows; b->name; b++) {
		if (STATE->initialized && STATE->has_mask && b->flags & BIT_FIXED && (mask[b->high] ^ STATE->mask[b->high]) & b->value)
			return say(c, "immutable-bit", "the bit changes in Initialize only: E_FAIL");
		if (STATE->attached && b->flags & NO_ATTACH && mask[b->high] & b->value)
			return say(c, "attached-bit", "the bit is not for an attached profiler: 8013136F");
		if (STATE->notification && b->flags & NO_NOTIFY && mask[b->high] & b->value)
			return say(c, "notification-bit", "the bit is not for a notification profiler: E_INVALIDARG");
	}
}

int seedwalk_checked_before(unsigned slot, const word *a)
{
	const struct thread *t = seedwalk_checked_thread();
	struct call c = {&info_rows[slot], t, slot, callback_of(t), a, 1};
	check_gate(&c);
	check_thread(&c);
	check_suspension(&c);
	check_locks(&c);
	check_arguments(&c);
	if (slot == SET_EVENT_MASK || slot == SET_EVENT_MASK2)
		check_mask(&c);
	return c.go;
}

void seedwalk_checked_after(unsigned slot, const word *a, hresult hr)
{
	struct thread *t = seedwalk_checked_thread();
	t->primed |= slot == DO_STACK_SNAPSHOT;
	if (hr & 0x80000000u)
		return;
	if (slot == SET_EVENT_MASK || slot == SET_EVENT_MASK2) {
		STATE->mask[0] = (uint32_t)a[0], STATE->has_mask = 1;
		if (slot == SET_EVENT_MASK2)
			STATE->mask[1] = (uint32_t)a[1];
	} else if (slot == SUSPEND) {
		__atomic_store_n(&STATE->owner, t, __ATOMIC_RELEASE);
	} else if (slot == RESUME) {
		__atomic_store_n(&STATE->owner, NULL, __ATOMIC_RELEASE);
	} else if (slot == REQUEST_DETACH) {
		STATE->detaching = 1;
	} else if (info_rows[slot].flags & BECOMES && t->depth == 0 && !t->let_in && !a[0]) {
		t->let_in = 1;
	}
}

void seedwalk_checked_enter(unsigned slot)
{
	struct thread *t = seedwalk_checked_thread();
	int known = slot < sizeof callback_rows / sizeof *callback_rows && callback_rows[slot].name;
	if (t->depth < DEPTH)
		t->slots[t->depth] = known ? (uint8_t)slot : 0;
	t->depth++;
}

void seedwalk_checked_leave(void)
{
	struct thread *t = seedwalk_checked_thread();
	if (t->depth > 0)
		t->depth--;
}

void seedwalk_checked_lock(void)
{
	struct thread *t = seedwalk_checked_thread();
	unsigned in = callback_of(t);
	if (t->snapshot)
		seedwalk_checked_say("lock", "lock-in-snapshot", "the walked thread may own it: a deadlock", 0);
	else if (t->stopped || STATE->owner == t)
		seedwalk_checked_say("lock", "lock-under-suspension", "a thread that you hold suspended may own it: a deadlock", 0);
	else if (in && !(callback_rows[in].flags & MAY_WAIT))
		seedwalk_checked_say("lock", "wait-in-callback", "the thread may be in cooperative mode here: while it waits no collection and no suspension begins", 0);
	t->locks++;
}

void seedwalk_checked_unlock(void)
{
	struct thread *t = seedwalk_checked_thread();
	if (t->locks == 0)
		seedwalk_checked_say("unlock", "unbalanced", "the thread owns no lock", 0);
	else
		t->locks--;
}

void seedwalk_checked_suspended(void)
{
	struct thread *t = seedwalk_checked_thread();
	if (t->stopped)
		seedwalk_checked_say("suspend", "two-targets", "one thread at a time: two that wait for each other never stand", 0);
	if (callback_of(t) || is_managed(t))
		seedwalk_checked_say("suspend", "managed-sampler", "only a thread that never ran managed code may suspend another", 0);
	t->stopped++;
}

void seedwalk_checked_resumed(void)
{
	struct thread *t = seedwalk_checked_thread();
	if (t->stopped == 0)
		seedwalk_checked_say("resume", "resume-twice", "another's suspension ends with this: the thread runs while somebody reads it", 0);
	else
		t->stopped--;
}
