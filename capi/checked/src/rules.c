/* Checks the rules, from the table of clr/api, and keeps the needed state of threads.
 *
 * Nothing here waits or allocates: it runs wherever a profiler calls the CLR. */
#include "internal.h"
#include "table.h"

enum { CLASS_FROM_OBJECT = 3, OBJECT_SIZE = 10, CURRENT_THREAD = 13, SET_EVENT_MASK = 16, FORCE_GC = 28, DO_STACK_SNAPSHOT = 36, FUNCTION_INFO2 = 38, ARRAY_INFO = 46,
	   GENERATION_BOUNDS = 54, OBJECT_GENERATION = 55, CLAUSE_INFO = 56, REQUEST_DETACH = 58, ENTER3_INFO = 63, LEAVE3_INFO = 64, TAILCALL3_INFO = 65,
	   ENUM_THREADS = 71, OBJECT_SIZE2 = 80, SET_EVENT_MASK2 = 82, REFERENCES = 93, IS_FROZEN = 94, SUSPEND = 97, RESUME = 98, START_SESSION = 101, STOP_SESSION = 103,
	   CREATE_PROVIDER = 104, CREATE_HANDLE = 108, DESTROY_HANDLE = 109, NON_GC_OBJECTS = 111, CREATE_PROVIDER2 = 113, HEAP_OBJECTS = 114 };
enum { INITIALIZE = 3, RUNTIME_RESUME_STARTED = 45, GC_STARTED = 73, GC_FINISHED = 75, INITIALIZE_FOR_ATTACH = 80 };
enum { NOT_CONCURRENT = 0x80131376u, LARGEST_OS_ID = 1 << 22 };
static const uint32_t ENABLE_STACK_SNAPSHOT = 0x10000000, MONITOR_ENTERLEAVE = 0x1000;

/* A CONTEXT's size, and its stack and instruction pointers in words (winnt.h). */
#ifdef __aarch64__
enum { CONTEXT_SIZE = 912, CONTEXT_SP = 0x100 / 8, CONTEXT_IP = 0x108 / 8 };
#else
enum { CONTEXT_SIZE = 1232, CONTEXT_SP = 0x98 / 8, CONTEXT_IP = 0xf8 / 8 };
#endif

/* The kinds of ids that methods take as their first argument. */
static const uint8_t first_ids[] = {
	[9] = THREAD_ID, [12] = THREAD_ID, [32] = THREAD_ID, [36] = THREAD_ID, [48] = THREAD_ID,
	[4] = MODULE_ID, [8] = MODULE_ID, [20] = MODULE_ID, [21] = MODULE_ID, [22] = MODULE_ID, [23] = MODULE_ID, [24] = MODULE_ID, [43] = MODULE_ID,
	[44] = MODULE_ID, [45] = MODULE_ID, [69] = MODULE_ID, [70] = MODULE_ID, [84] = MODULE_ID, [85] = MODULE_ID, [86] = MODULE_ID,
	[11] = CLASS_ID, [14] = CLASS_ID, [40] = CLASS_ID, [41] = CLASS_ID, [47] = CLASS_ID, [49] = CLASS_ID, [50] = CLASS_ID, [51] = CLASS_ID,
	[52] = CLASS_ID, [53] = CLASS_ID, [68] = CLASS_ID,
	[5] = FUNCTION_ID, [15] = FUNCTION_ID, [19] = FUNCTION_ID, [29] = FUNCTION_ID, [35] = FUNCTION_ID, [38] = FUNCTION_ID, [42] = FUNCTION_ID,
	[75] = FUNCTION_ID, [77] = FUNCTION_ID, [78] = FUNCTION_ID, [87] = FUNCTION_ID, [89] = FUNCTION_ID, [90] = FUNCTION_ID,
	[25] = DOMAIN_ID, [26] = ASSEMBLY_ID, [102] = SESSION_ID, [103] = SESSION_ID, [109] = HANDLE_ID, [110] = HANDLE_ID, [114] = NO_ID};

#define STATE (&seedwalk_checked_state)

/* The callback that the thread is in, 0: none. */
static unsigned callback_of(const struct thread *t)
{
	return t->depth > 0 ? t->slots[(t->depth <= DEPTH ? t->depth : DEPTH) - 1] : 0;
}

/* The calling thread's ThreadID, 0: none. The CLR takes no lock for this call and permits it everywhere. */
static word current(const struct thread *t)
{
	uint64_t id = 0;
	if (!STATE->info || t->let_in)
		return 0;
	return METHOD(STATE->info, CURRENT_THREAD, hresult (*)(void *, uint64_t *))(STATE->info, &id) == 0 ? (word)id : 0;
}

static int is_managed(const struct thread *t) { return current(t) != 0; }

static const char *place_of(const struct thread *t)
{
	unsigned in = callback_of(t);
	if (t->snapshot)
		return "a StackSnapshotCallback";
	if (in)
		return callback_rows[in].name;
	return is_managed(t) ? "a managed thread outside callbacks" : "a thread of the profiler's";
}

void seedwalk_checked_say_of(const char *method, const char *place, int check, int fatal)
{
	const struct check_row *r = &check_rows[check];
	seedwalk_violation v = {sizeof v, fatal, method, place, r->name, r->text, r->remedy};
	STATE->report(&v, STATE->client);
}

void seedwalk_checked_say(const char *method, int check, int fatal)
{
	struct thread *t = seedwalk_checked_thread();
	t->reported = 1;
	seedwalk_checked_say_of(method, place_of(t), check, fatal);
}

/* One call before it is executed. */
struct call {
	const struct info_row *m;
	const struct thread *t;
	unsigned slot, in;
	const word *a;
	int go; /* it may be executed */
};

static void say(struct call *c, int check) { seedwalk_checked_say(c->m->name, check, 0); }

/* Do not execute the call. */
static void stop(struct call *c, int check)
{
	if (c->go)
		seedwalk_checked_say(c->m->name, check, 1);
	c->go = 0;
}

/* Checks where the method may be called from. */
static void check_gate(struct call *c)
{
	int gate = c->m->gate, flags = c->m->flags, in_init = c->in == INITIALIZE || c->in == INITIALIZE_FOR_ATTACH;
	int known = STATE->profiler || c->in;
	if (known && !c->in && (gate == SYNC || gate == SYNC_GC) && is_managed(c->t))
		say(c, CHECK_OUTSIDE_CALLBACK);
	if (c->in && !(callback_rows[c->in].flags & TRIGGERS) && (gate == SYNC_GC || flags & NOTRIGGER_REFUSES || (flags & GC && gate != OWN)))
		say(c, CHECK_TRIGGERS_IN_NOTRIGGER);
	if (c->in == RUNTIME_RESUME_STARTED && flags & GC)
		say(c, CHECK_TRIGGERS_WHILE_SUSPENDED);
	if (gate == INIT_ONLY && STATE->initialized)
		say(c, CHECK_INIT_ONLY);
	if (gate == STUB)
		say(c, CHECK_NOT_IMPLEMENTED);
	if (in_init && flags & CRASHES_IN_INIT)
		stop(c, CHECK_CRASHES_IN_INITIALIZE);
	if (in_init && (c->slot == SUSPEND || c->slot == RESUME || c->slot == DO_STACK_SNAPSHOT))
		say(c, CHECK_TOO_EARLY);
	if (c->slot == FORCE_GC && c->in)
		say(c, CHECK_COLLECT_IN_CALLBACK);
	if ((c->in == GC_STARTED || c->in == GC_FINISHED) && (c->slot == ENUM_THREADS || c->m->flags & NO_OWNER))
		say(c, CHECK_ENUMERATE_IN_COLLECTION);
	if (STATE->profiler && c->m->version > STATE->version)
		say(c, CHECK_INTERFACE_NOT_ASKED);
	if (STATE->has_mask && c->slot != DO_STACK_SNAPSHOT && c->m->needs && !(STATE->mask[0] & c->m->needs) && !STATE->mask[1])
		say(c, CHECK_MISSING_BIT);
	if (STATE->down)
		say(c, CHECK_AFTER_SHUTDOWN);
	if (STATE->detaching)
		say(c, CHECK_DETACHING);
	if (STATE->attached && flags & NO_ATTACH)
		say(c, CHECK_ATTACHED);
	if (STATE->notification && flags & NO_NOTIFY)
		say(c, CHECK_NOTIFICATION);
}

/* Checks which threads may not call it. */
static void check_thread(struct call *c)
{
	int native = !c->in && !is_managed(c->t);
	if (native && c->m->flags & KILLS && !c->t->let_in)
		stop(c, CHECK_TYPE_ON_NATIVE_THREAD);
	if (c->slot == SUSPEND && !native)
		say(c, CHECK_MANAGED_SAMPLER);
	if (native && c->m->flags & BECOMES && (c->slot != FORCE_GC || c->t->stopped))
		say(c, CHECK_SAMPLER_BECOMES_MANAGED);
}

/* Checks suspension: of the runtime by this thread or another, of a thread by this one. */
static void check_suspension(struct call *c)
{
	int own = STATE->owner == c->t->serial, other = STATE->owner && !own;
	if (c->t->stopped && (c->m->flags & NO_THREAD))
		say(c, CHECK_LOCK_OF_SUSPENDED);
	if (c->slot == SUSPEND && own)
		stop(c, CHECK_NESTED_SUSPENSION);
	if (other && (c->slot == SUSPEND || c->m->flags & OTHER_HANGS))
		stop(c, CHECK_SUSPENDED_ELSEWHERE);
	if (c->slot == RESUME && !STATE->owner)
		say(c, CHECK_RESUME_WITHOUT_SUSPEND);
	if (c->slot == RESUME && c->t->snapshot)
		stop(c, CHECK_RESUME_IN_SNAPSHOT);
	for (int i = 0; c->slot == RESUME && own && i < THREADS; i++)
		if (&seedwalk_checked_threads[i] != c->t && __atomic_load_n(&seedwalk_checked_threads[i].calling, __ATOMIC_ACQUIRE) == DO_STACK_SNAPSHOT)
			return say(c, CHECK_RESUME_UNDER_WALK);
	if (c->slot == RESUME && other)
		stop(c, CHECK_RESUME_ELSEWHERE);
	if (own && c->m->flags & OWNER_HANGS)
		stop(c, CHECK_HANGS_UNDER_SUSPENSION);
	else if (own && c->m->flags & NO_OWNER)
		say(c, CHECK_THREAD_STORE_LOCK);
}

/* Whether a method calls the profiler before it returns, other than through a callback. */
static int calls_back(unsigned slot)
{
	return slot == REFERENCES || slot == NON_GC_OBJECTS || slot == HEAP_OBJECTS || (slot >= START_SESSION && slot <= CREATE_PROVIDER) || slot == CREATE_PROVIDER2;
}

/* Checks the profiler's locks, and calls during which CLR code waits. */
static void check_locks(struct call *c)
{
	if (c->t->locks && c->m->flags & GC)
		say(c, CHECK_LOCK_OVER_COLLECTION);
	if (c->t->snapshot && c->slot == DO_STACK_SNAPSHOT)
		stop(c, CHECK_NESTED_SNAPSHOT);
	else if (c->t->snapshot && (c->m->flags & NO_THREAD))
		say(c, CHECK_CALL_IN_SNAPSHOT);
	if (STATE->profiler && c->t->calling && !c->t->snapshot && !calls_back(c->t->calling))
		say(c, CHECK_CALL_IN_SIGNAL);
}

static void check_walk(struct call *c)
{
#ifndef _WIN32
	/* The first walk of a sampler should be of a running thread. */
	if (c->a[0] && STATE->owner != c->t->serial && (c->t->primed || c->in) && current(c->t) != c->a[0])
		say(c, CHECK_UNSUSPENDED_WALK);
#endif
	if (STATE->has_mask && !(STATE->mask[0] & ENABLE_STACK_SNAPSHOT))
		say(c, CHECK_MASK_WITHOUT_SNAPSHOT);
	if ((uint32_t)c->a[2] & ~1u)
		say(c, CHECK_SNAPSHOT_FLAGS);
	if (!c->a[1])
		stop(c, CHECK_NULL_POINTER);
	if (c->a[4] && (uint32_t)c->a[5] < CONTEXT_SIZE)
		stop(c, CHECK_SEED_SIZE);
	else if (c->a[4] && !(((const word *)c->a[4])[CONTEXT_SP] && ((const word *)c->a[4])[CONTEXT_IP]))
		stop(c, CHECK_SEED_EMPTY);
}

/* Checks ids that the CLR would trust. */
static void check_ids(struct call *c)
{
	static const int stale[KINDS] = {0, CHECK_THREAD_DESTROYED, CHECK_STALE_MODULE, CHECK_STALE_CLASS, CHECK_STALE_FUNCTION,
									 CHECK_STALE_ASSEMBLY, CHECK_STALE_DOMAIN, CHECK_STALE_HANDLE, CHECK_STALE_SESSION};
	enum kind kind = first_ids[c->slot];
	word id = c->a[0];
	if (kind == NO_ID)
		return;
	if (kind == FUNCTION_ID && !id)
		say(c, CHECK_FUNCTION_ZERO);
	if (kind == THREAD_ID && id && (id < LARGEST_OS_ID || id % sizeof(void *)))
		stop(c, CHECK_NOT_A_THREAD_ID);
	if (id && seedwalk_checked_is_dead(kind, id))
		stop(c, stale[kind]);
}

/* Checks arguments that the CLR would trust. */
static void check_arguments(struct call *c)
{
	check_ids(c);
	switch (c->slot) {
	case DO_STACK_SNAPSHOT:
		check_walk(c);
		break;
	case FUNCTION_INFO2:
		if (c->a[1] && !(STATE->mask[0] & MONITOR_ENTERLEAVE) && !(c->t->snapshot && c->t->frame == c->a[1]))
			stop(c, CHECK_FRAME_INFO);
		break;
	case ENTER3_INFO: case LEAVE3_INFO: case TAILCALL3_INFO:
		if (STATE->profiler && (c->in || !is_managed(c->t)))
			stop(c, CHECK_ELT_INFO);
		break;
	case REQUEST_DETACH:
		for (const struct mask_row *b = mask_rows; STATE->has_mask && b->name; b++)
			if (b->flags & BIT_FIXED && STATE->mask[b->high] & b->value)
				return say(c, CHECK_DETACH_IMMUTABLE);
		break;
	case CLASS_FROM_OBJECT: case OBJECT_SIZE: case ARRAY_INFO: case OBJECT_SIZE2: case REFERENCES: case CREATE_HANDLE:
		if (STATE->profiler && !(c->in && callback_rows[c->in].flags & OBJECTS))
			say(c, CHECK_OBJECT_MOVES);
		break;
	case GENERATION_BOUNDS: case OBJECT_GENERATION: case IS_FROZEN:
		if (!c->a[1])
			stop(c, CHECK_NULL_POINTER);
		break;
	case CLAUSE_INFO:
		if (!c->a[0])
			stop(c, CHECK_NULL_POINTER);
		break;
	}
}

/* Checks bits of the event mask that can no longer change, or that this profiler may not set. */
static void check_mask(struct call *c)
{
	uint32_t mask[2] = {(uint32_t)c->a[0], c->slot == SET_EVENT_MASK2 ? (uint32_t)c->a[1] : STATE->mask[1]};
	for (const struct mask_row *b = mask_rows; b->name; b++) {
		if (STATE->initialized && STATE->has_mask && b->flags & BIT_FIXED && (mask[b->high] ^ STATE->mask[b->high]) & b->value)
			return say(c, CHECK_IMMUTABLE_BIT);
		if (STATE->attached && b->flags & NO_ATTACH && mask[b->high] & b->value)
			return say(c, CHECK_ATTACHED_BIT);
		if (STATE->notification && b->flags & NO_NOTIFY && mask[b->high] & b->value)
			return say(c, CHECK_NOTIFICATION_BIT);
	}
}

int seedwalk_checked_before(unsigned slot, const word *a)
{
	const struct thread *t = seedwalk_checked_thread();
	struct call c = {&info_rows[slot], t, slot, callback_of(t), a, 1};
	seedwalk_checked_thread()->steps++;
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
	t->primed |= slot == DO_STACK_SNAPSHOT, t->steps++;
	if (hr == REFUSED && !t->reported && STATE->profiler)
		seedwalk_checked_say(info_rows[slot].name, CHECK_REFUSED, 0);
	if (hr == NOT_CONCURRENT)
		seedwalk_checked_say(info_rows[slot].name, CHECK_MONITOR_GC_LATE, 0);
	if (hr & 0x80000000u)
		return;
	if (slot == DESTROY_HANDLE || slot == STOP_SESSION)
		seedwalk_checked_end(first_ids[slot], a[0], 1);
	if (slot == CREATE_HANDLE && a[1])
		seedwalk_checked_end(HANDLE_ID, *(word *)a[1], 0);
	if (slot == START_SESSION && a[3])
		seedwalk_checked_end(SESSION_ID, (word)*(uint64_t *)a[3], 0);
	if (slot == SET_EVENT_MASK || slot == SET_EVENT_MASK2) {
		STATE->mask[0] = (uint32_t)a[0], STATE->has_mask = 1;
		if (slot == SET_EVENT_MASK2)
			STATE->mask[1] = (uint32_t)a[1];
	} else if (slot == SUSPEND) {
		__atomic_store_n(&STATE->owner, t->serial, __ATOMIC_RELEASE);
	} else if (slot == RESUME) {
		__atomic_store_n(&STATE->owner, 0, __ATOMIC_RELEASE);
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
	t->depth++, t->steps++;
}

void seedwalk_checked_leave(void)
{
	struct thread *t = seedwalk_checked_thread();
	if (t->depth > 0)
		t->depth--;
	t->steps++;
}

void seedwalk_checked_lock(void)
{
	struct thread *t = seedwalk_checked_thread();
	unsigned in = callback_of(t);
	if (t->snapshot)
		seedwalk_checked_say("lock", CHECK_LOCK_IN_SNAPSHOT, 0);
	else if (t->stopped || STATE->owner == t->serial)
		seedwalk_checked_say("lock", CHECK_LOCK_UNDER_SUSPENSION, 0);
	else if (in && !(callback_rows[in].flags & MAY_WAIT))
		seedwalk_checked_say("lock", CHECK_WAIT_IN_CALLBACK, 0);
	t->locks++;
}

void seedwalk_checked_unlock(void)
{
	struct thread *t = seedwalk_checked_thread();
	if (t->locks == 0)
		seedwalk_checked_say("unlock", CHECK_UNBALANCED, 0);
	else
		t->locks--;
}

void seedwalk_checked_suspended(void)
{
	struct thread *t = seedwalk_checked_thread();
	if (t->stopped)
		seedwalk_checked_say("suspend", CHECK_TWO_TARGETS, 0);
	if (callback_of(t) || is_managed(t))
		seedwalk_checked_say("suspend", CHECK_MANAGED_SAMPLER, 0);
	t->stopped++;
}

void seedwalk_checked_resumed(void)
{
	struct thread *t = seedwalk_checked_thread();
	if (t->stopped == 0)
		seedwalk_checked_say("resume", CHECK_RESUME_TWICE, 0);
	else
		t->stopped--;
}
