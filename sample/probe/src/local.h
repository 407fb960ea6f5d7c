/* Declarations that the probe's files share. */
#ifndef SEEDWALK_LOCAL_H
#define SEEDWALK_LOCAL_H

#include "probe.h"
#ifdef _WIN32
#include "sys_windows.h"
#else
#include "sys.h"
#endif

enum { SW_BEFORE_RING = SW_HEADER_SIZE + SW_SLOTS * SW_SLOT_SIZE + SW_WAITERS * SW_WAITER_SIZE + SW_TYPES * SW_TYPE_SIZE + SW_RULES * 16 };

extern struct sw_header *sw_shared;

/* sw_slot_of returns the slot of a thread by its number, or 0. */
static inline struct sw_slot *sw_slot_of(struct sw_header *h, uint32_t tid)
{
	struct sw_slot *all = (struct sw_slot *)((char *)h + SW_HEADER_SIZE);
	for (uint32_t i = 0; i < SW_NEAR; i++) {
		struct sw_slot *s = all + ((tid + i) & (SW_SLOTS - 1));
		if (__atomic_load_n(&s->tid, __ATOMIC_RELAXED) == tid)
			return s;
	}
	return 0;
}

static inline char *ring(struct sw_header *h) { return (char *)h + SW_BEFORE_RING; }

/* sw_claim takes room in the ring, or returns 0 if the ring is full. A thread that is interrupted between
 * claim and commit delays no other thread. If head is older than tail, the difference is negative, and the
 * exchange reads head again. */
static inline struct sw_record *sw_claim(struct sw_header *h, uint64_t size, uint64_t *at)
{
	uint64_t head = __atomic_load_n(&h->head, __ATOMIC_RELAXED);
	for (int i = 0; i < 64; i++) {
		if ((int64_t)(head + size - __atomic_load_n(&h->tail, __ATOMIC_ACQUIRE)) > SW_RING_SIZE)
			break;
		if (__atomic_compare_exchange_n(&h->head, &head, head + size, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			struct sw_record *r = (struct sw_record *)(ring(h) + (head & (SW_RING_SIZE - 1)));
			r->size = (uint32_t)size;
			__atomic_store_n(&r->claim, head | 2, __ATOMIC_RELEASE);
			*at = head;
			return r;
		}
	}
	return 0;
}

/* sw_tool_lives reports whether the tool's last heartbeat is younger than some nanoseconds. It loads the heartbeat
 * first: one that comes between the two loads would be later than now. */
static inline int sw_tool_lives(const struct sw_header *h, uint64_t within)
{
	uint64_t beat = __atomic_load_n(&h->heartbeat, __ATOMIC_RELAXED);
	return now() - beat < within;
}

/* sw_patched searches for the address that the runtime writes over return addresses. It may lie deep in the
 * stack, because the patched method may have called others since. */
static inline int sw_patched(const uint64_t *stack, uint64_t size, uint64_t patch)
{
	for (uint64_t i = 0; patch && i < size / 8; i++)
		if (stack[i] == patch)
			return 1;
	return 0;
}

/* sw_signals returns our signals as a mask. */
static inline uint64_t sw_signals(const struct sw_header *h)
{
	return (h->legacy ? 1ull << (h->legacy - 1) : 0) | (h->real_time ? 1ull << (h->real_time - 1) : 0);
}

#ifndef _WIN32
/* sw_faults returns the signals of faults as a mask. Their handlers may never return, because a runtime
 * leaves them by throwing. */
static inline uint64_t sw_faults(void)
{
	enum { ILL = 4, TRAP = 5, BUS = 7, FPE = 8 };
	return 1ull << (ILL - 1) | 1ull << (TRAP - 1) | 1ull << (BUS - 1) | 1ull << (FPE - 1) | 1ull << (SIGSEGV - 1);
}

void sw_handler(int sig, const struct info *si, const struct frame *uc);
void sw_restorer(void);
int sw_answer(struct sw_header *h, const struct info *si, uint32_t tid); /* 1 if the signal requested a read */
#endif
int sw_start(const char *socket); /* 0 if the tool has the file */
int sw_start_at(long socket, int pid); /* the same for a connected tool; -1 no memory, -2 the tool has ended */
int sw_ask_tool(const char *socket, char *instead, int room); /* 1 if another library is to be loaded instead */
void sw_relay(struct sw_header *h);    /* intercept the runtime's signal */
void sw_unrelay(struct sw_header *h);  /* restore the runtime's handler, if no signal of ours can still arrive */
void sw_put_back(struct sw_header *h); /* restore signals and masks of the process */
void sw_end(struct sw_header *h);      /* end the recording */
int sw_wait_out(void);                 /* 1 if no handler runs; after sw_end */
void sw_describe(struct sw_header *h); /* fill in the header of a new file */
void sw_forked(void);                  /* in the child: forget the parent's recording */
void sw_copy(void *to, uint64_t from, uint64_t n);        /* all bytes must be readable */
uint64_t sw_checked(void *to, uint64_t from, uint64_t n); /* copies what is readable; the number of bytes */

/* copy.c: the subject of a copy. sw_take returns 0 if the ring has no room. */
struct sw_at {
	uint32_t tid;
	uint32_t id;    /* the event's, or SW_ASKED_COPY */
	uint64_t since; /* a wait: its start; SW_ASKED_COPY: the program's own value */
	uint64_t time;
	int flags;
};
int sw_take(struct sw_header *h, const struct sw_at *what, const void *payload, uint32_t size, const struct kept *k);

/* objects.c */
void sw_objects(struct sw_header *h, const struct sw_slot *s, const uint64_t *regs, const uint64_t *stack, uint64_t size, void *out);

/* dropped.c */
void sw_dropped(struct sw_header *h, uint32_t id, const uint8_t *payload, uint32_t size);

/* The event session. */
int sw_listen(void *profiler, void *info); /* 0 if events will be delivered */
int sw_silence(struct sw_header *h); /* end the session if the tool is dead; 1 while it is ending */
void sw_delivered(void);   /* EventPipeEventDelivered */
void sw_forget(void);      /* learn again how events are delivered */
int sw_is_ours(void *profiler);
int sw_is_runtime(void *provider);
uint64_t sw_current(void);
int sw_socket_from_environment(char *path, int room);

#endif
