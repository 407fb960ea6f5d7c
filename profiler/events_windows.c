/* Waits, locks, allocations, and exceptions on Windows. They are the runtime's events, handled by the same
 * code as the probe's on Linux. The shared memory is a section that the tool has created and named in the
 * environment; the tool walks the copies. No Go code runs for it.
 *
 * The room behind the ring holds the longest record, so that no record wraps around. */

/* The library already has a function with this name. */
#define sw_copy sw_event_copy
#include "../sample/probe/src/session.c"
#include "../sample/probe/src/copy.c"
#include "../sample/probe/src/copy_windows.c"
#include "../sample/probe/src/events.c"
#include "../sample/probe/src/dropped.c"

typedef uint32_t sw_hresult;
sw_hresult sw_events_begin(void *self, void *unknown);
void sw_events_end(void);
const char *sw_environment(const char *name);

struct sw_header *sw_shared;

/* The first runtime of a recording gets the section. */
sw_hresult sw_events_begin(void *self, void *unknown)
{
	enum { E_FAIL_HERE = 0x80004005u };
	HANDLE section = OpenFileMappingA(FILE_MAP_ALL_ACCESS, FALSE, sw_environment("SEEDWALK_EVENTS"));
	struct sw_header *h = section ? MapViewOfFile(section, FILE_MAP_ALL_ACCESS, 0, 0, 0) : NULL;
	uint32_t none = 0;
	if (!h || h->magic != SW_MAGIC || h->version != SW_VERSION ||
	    !__atomic_compare_exchange_n(&h->pid, &none, GetCurrentProcessId(), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
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
		    !sw_tool_lives(h, h->stale))
			return;
		Sleep(1);
	}
}
