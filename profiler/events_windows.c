/* Waits, locks, allocations, and exceptions on Windows. They are the runtime's events, handled by the same
 * code as the probe's on Linux. The shared memory is a section that the tool has created and named in the
 * environment; the tool walks the copies. No Go code runs for it.
 *
 * The room behind the ring holds the longest record, so that no record wraps around. */

/* The library already has functions with these names. */
#define sw_claim sw_event_claim
#define sw_copy sw_event_copy
#include "../sample/probe/src/session.c"
#include "../sample/probe/src/copy.c"
#include "../sample/probe/src/events.c"
#include "../sample/probe/src/dropped.c"

typedef uint32_t sw_hresult;
sw_hresult sw_events_begin(void *self, void *unknown);
void sw_events_end(void);
const char *sw_environment(const char *name);

struct sw_header *sw_shared;

void sw_copy(void *to, uint64_t from, uint64_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

/* The stack of the calling thread, or its Thread in the runtime, 0 if it has none. */
uint64_t sw_checked(void *to, uint64_t from, uint64_t n)
{
	if (!from)
		return 0;
	sw_copy(to, from, n);
	return n;
}

/* Claims room in the ring, as on Linux (handler.c). */
struct sw_record *sw_claim(struct sw_header *h, uint64_t size, uint64_t *at)
{
	uint64_t head = __atomic_load_n(&h->head, __ATOMIC_RELAXED);
	for (int i = 0; i < 64; i++) {
		if (head + size - __atomic_load_n(&h->tail, __ATOMIC_ACQUIRE) > SW_RING_SIZE)
			break;
		if (__atomic_compare_exchange_n(&h->head, &head, head + size, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			struct sw_record *r = (struct sw_record *)((char *)h + SW_BEFORE_RING + (head & (SW_RING_SIZE - 1)));
			r->size = (uint32_t)size;
			__atomic_store_n(&r->claim, head | 2, __ATOMIC_RELEASE);
			*at = head;
			return r;
		}
	}
	return 0;
}

int sw_patched(const uint64_t *stack, uint64_t size, uint64_t patch)
{
	for (uint64_t i = 0; patch && i < size / 8; i++)
		if (stack[i] == patch)
			return 1;
	return 0;
}

/* The first runtime of a recording gets the section. */
sw_hresult sw_events_begin(void *self, void *unknown)
{
	enum { E_FAIL_HERE = 0x80004005u };
	HANDLE section = OpenFileMappingA(FILE_MAP_ALL_ACCESS, FALSE, sw_environment("SEEDWALK_EVENTS"));
	struct sw_header *h = section ? MapViewOfFile(section, FILE_MAP_ALL_ACCESS, 0, 0, 0) : NULL;
	uint32_t nobody = 0;
	if (!h || h->magic != SW_MAGIC || h->version != SW_VERSION ||
	    !__atomic_compare_exchange_n(&h->pid, &nobody, GetCurrentProcessId(), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return (sw_hresult)E_FAIL_HERE;
	h->base = P(h);
	sw_shared = h;
	return sw_listen(self, unknown) ? (sw_hresult)E_FAIL_HERE : 0;
}

/* The tool needs this process's memory to walk the copies, so the process waits until it has read them, up
 * to a limit. */
void sw_events_end(void)
{
	enum { LONGEST_MS = 2000 };
	struct sw_header *h = sw_shared;
	for (int i = 0; h && i < LONGEST_MS && !__atomic_load_n(&h->leave, __ATOMIC_ACQUIRE); i++) {
		if (__atomic_load_n(&h->tail, __ATOMIC_ACQUIRE) == __atomic_load_n(&h->head, __ATOMIC_ACQUIRE) ||
		    now() - __atomic_load_n(&h->heartbeat, __ATOMIC_RELAXED) > h->stale)
			return;
		Sleep(1);
	}
}
