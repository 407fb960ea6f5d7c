/* The memory file that the probe and the tool share. sample/probe/layout.go mirrors it; its test reads the
 * SW_AT lines.
 *
 * The file holds a header, the slots, the open waits, the types of dropped events, the rules of types, and
 * the ring. The target maps the ring twice in a row, so that every record is contiguous there. */
#ifndef SEEDWALK_PROBE_H
#define SEEDWALK_PROBE_H

#include <stddef.h>
#include <stdint.h>

enum {
	SW_VERSION = 9,
	SW_HEADER_SIZE = 4096,
	SW_SLOTS = 4096,
	SW_SLOT_SIZE = 64,
	SW_WAITERS = 2048,       /* threads that wait at the same time */
	SW_WAITER_SIZE = 256,
	SW_NESTED = 3,           /* waits within waits of one thread */
	SW_TYPES = 512,          /* of dropped events; the first two collect types without a place */
	SW_TYPE_SIZE = 512,
	SW_TYPE_NAME = 480,      /* bytes kept of a type's name */
	SW_RULES = 1 << 14,      /* places for types whose objects are followed, and for frames */
	SW_OBJECTS = 64,         /* entries that one sample may find; they fill SW_MAX_PAYLOAD */
	SW_RING_SIZE = 1 << 22,
	SW_MAX_STACK = 1 << 20,          /* copied of one stack */
	SW_MAX_CHECKED = 1 << 16,        /* of a stack that is not the thread's own */
	SW_MAX_EVENT_STACK = 1 << 18,    /* copied at an event */
	SW_MAX_PAYLOAD = 1024,           /* of an event */
	SW_START_PAYLOAD = 40,           /* of a wait's start */
	SW_ALIGN = 64,
	SW_REAP = 16,            /* timers of ended threads that wait to be ended */
	SW_REAPED = 1 << 30,     /* set in an entry of reap while a handler ends its timer */
	SW_NEAR = 64,            /* places to search for a thread's slot, from its number's place on */
	SW_RED_ZONE = 128,
};

/* The architectures. SW_MAX_EXTRA is the number of bytes copied of the runtime's Thread: on ARM64 the
 * needed fields are at higher offsets. */
enum { SW_AMD64 = 1, SW_ARM64 = 2 };
#if defined(__aarch64__)
enum { SW_ARCH = SW_ARM64, SW_MAX_EXTRA = 256, SW_REGS = 41 }; /* x0-x30 sp pc d8-d15 */
#else
enum { SW_ARCH = SW_AMD64, SW_MAX_EXTRA = 192, SW_REGS = 17 }; /* r8-r15 rdi rsi rbp rbx rdx rax rcx rsp rip */
#endif

#define SW_MAGIC 0x31656b6c61776553ull /* "Sewalke1" */

/* The tool's request to a thread, in the thread's slot. */
enum {
	SW_OP_SAMPLE = 1,
	SW_OP_ARM = 2,    /* create the thread's CPU timer, copy nothing */
	SW_OP_DISARM = 3,
	SW_OP_LEAVE = 4,  /* restore the process */
	SW_OP_CLOCK = 5,  /* a CPU sample at a moment that the tool chose */
};

/* Values of the header's left. */
enum { SW_LEAVING = 1, SW_LEFT = 2 };

/* Why a record was made. */
enum {
	SW_ASKED = 1, /* the tool asked for a sample (SW_OP_SAMPLE) */
	SW_TIMER = 2, /* the thread's CPU timer expired */
	SW_ARMED = 3, /* the thread created its timer (SW_OP_ARM): no stack */
	SW_EVENT = 4, /* the runtime delivered an event: only callee-saved registers are known */
	SW_CLOCK = 5, /* a CPU sample of weight 1: an event's overflow, or the tool's random clock */
};

/* A slot's clock: the tool's descriptor of the thread's event + 1, SW_CLOCK_FIRST, and above that how many of
 * 4096 overflows become samples (0 = all). A young thread has a short period, and the handler drops most
 * overflows at random. So the number of samples is proportional to the thread's CPU time, however short its
 * life is. With SW_CLOCK_FIRST, the next overflow is a sample in any case, and the handler clears the flag. */
enum { SW_CLOCK_BITS = 20, SW_CLOCK_FIRST = 524288 /* bit 19 */, SW_CLOCK_FILE = SW_CLOCK_FIRST - 1 };

/* Flags of a record. */
enum {
	SW_FOREIGN = 1, /* sp is outside the slot's stack: a checked copy */
	SW_CUT = 2,     /* the copy ends before the stack does */
	SW_PATCHED = 4, /* the runtime replaced a return address: the record holds the Thread's bytes */
	SW_ON_ALT = 8,  /* the thread was on its alternate stack */
	SW_LEARN = 16,  /* an event recorded only for its stack, which shows how events are delivered */
};

/* The id of a copy that the program itself requested. since is then the program's own value. */
#define SW_ASKED_COPY 0x80000000u

/* Events that the tool may request. */
enum {
	SW_WAITS = 1,
	SW_LOCKS = 2,
	SW_ALLOC = 4,
	SW_EXCEPTION = 8,
};

struct sw_header {
	uint64_t magic;
	uint32_t version;
	uint32_t pid;        /* as the target sees itself */
	uint64_t base;       /* where the target mapped the header */
	uint32_t tag;        /* upper half of every cookie */
	uint32_t legacy;     /* SIGURG, or 0 if the program uses it */
	uint32_t real_time;  /* a real-time signal, or 0 if none is free */
	uint32_t left;       /* SW_LEAVING while the process is restored, SW_LEFT after it */
	uint64_t heartbeat;  /* CLOCK_MONOTONIC nanoseconds, the tool's */
	uint64_t stale;      /* nanoseconds without a heartbeat after which the tool counts as dead */
	uint64_t period;     /* of timers, nanoseconds of CPU time */
	uint64_t patch;      /* the address that the runtime writes over a return address, 0 = unknown */
	uint32_t timer_signal;
	uint32_t masked_low; /* signals whose handlers block ours: bit signal-1 */
	uint32_t masked_high;
	uint32_t real_sent;  /* the tool sent the real-time signal at least once */
	uint64_t head;       /* bytes ever claimed */
	uint64_t tail;       /* bytes ever freed by the tool */
	uint64_t signals;    /* handler runs */
	uint64_t dropped;    /* samples for which the ring had no room */
	uint64_t strangers;  /* signals that seedwalk did not send */
	uint64_t timers;     /* armed now */
	uint64_t stopped;    /* timers stopped because the tool was dead */
	uint64_t nanos;      /* total time in the handler */
	uint32_t reaping;    /* reap has entries */
	uint32_t reap[SW_REAP]; /* slots + 1 of ended threads whose timers still exist */
	uint32_t events;        /* requested events: the tool sets it before the probe continues, and to 0 at the end */
	uint64_t wait_min;      /* nanoseconds: shorter waits are only counted */
	uint32_t leave;         /* a futex: nonzero ends the session */
	uint32_t helper;        /* the thread that ends the session, 0 = none */
	uint32_t session;       /* of events: 0 = none, 1 = it runs, 2 = it has ended */
	uint32_t failed;        /* HRESULT of the failed call */
	uint64_t waits;         /* events seen, by kind: starts of waits */
	uint64_t wait_stops;
	uint64_t locks;
	uint64_t lock_stops;
	uint64_t allocs;
	uint64_t exceptions;
	uint64_t brief;         /* waits and locks shorter than wait_min */
	uint64_t brief_nanos;
	uint64_t inner;         /* waits inside a lock */
	uint64_t early;         /* stops without a start */
	uint64_t crowded;       /* starts for which the table had no room */
	uint64_t missed;        /* events for which the ring had no room */
	uint64_t event_nanos;   /* total time of the copies */
	uint64_t copies;
	uint64_t main_stack;    /* where the first thread's stack begins */
	uint32_t ending;        /* the next thread that takes a signal of ours restores the process */
	uint32_t arch;          /* SW_AMD64 or SW_ARM64 */
	uint32_t relay;         /* the runtime's own signal, which our relay intercepts; 0 = none */
	uint32_t relay_sent;    /* signals that the tool sent by the relay */
	uint32_t relayed;       /* signals that the relay received */
	uint32_t timer_keep;    /* how many of 4096 timer expiries become samples of weight 1; 0: all, with weight 1 + overrun */
	uint64_t heap;          /* where the managed heap begins, and its size; 0: objects are not followed */
	uint64_t heap_size;
	uint64_t heap_changes;  /* address of an int32 above 0 while a collection changes the heap, 0 = not known */
	uint32_t thread_handle; /* offset in the runtime's Thread of the handle of its object, 0 = not known */
	uint32_t chained;       /* 1: another handler of SIGURG has called ours */
	uint64_t code;          /* the lowest return address that has a rule, and how far the others are above it */
	uint64_t code_size;
	uint32_t suspended;     /* Windows: the thread that the client's helper has suspended, 0 = none */
	uint32_t hold;          /* 1: an exit waits, since the tool cannot walk its samples yet */
};

/* How an object of a type leads to the next object of its chain. The chain continues at one of the words of the
 * object between the byte offsets from and to. If that is a single word, it refers to the next object.
 * Otherwise the next object is the first one there whose rule has SW_RULE_START, SW_RULE_TASK, or SW_RULE_TEXT.
 * With SW_RULE_TEXT, the chain ends, and from and to are the offsets of two references to strings.
 *
 * With SW_RULE_FRAME, table is a return address into an async method. The method's object may be
 * in the from words of the stack below that address, or in the to words that begin with it. */
struct sw_rule {
	uint64_t table; /* its MethodTable, or the return address; 0 = free */
	uint64_t rule;  /* from | to << 16 | SW_RULE_... << 32; set before table */
};
enum { SW_RULE_KNOWN = 1, SW_RULE_START = 2, SW_RULE_TEXT = 4, SW_RULE_TASK = 8, SW_RULE_FRAME = 16 };

/* An entry of a sample's objects has two words. The first is an object's address, with the kind of the entry in
 * its lower bits. The second is the object's MethodTable, with the number of its chain in its lower bits: the
 * entries of several chains alternate. */
enum {
	SW_OBJECT_START = 1,  /* a chain begins */
	SW_OBJECT_NEXT = 2,
	SW_OBJECT_NOVEL = 3,  /* in no chain: a candidate whose type has no rule */
	SW_OBJECT_THREAD = 4, /* the thread's managed object */
	SW_OBJECT_TEXT = 5,   /* no address; the second word is a number of bytes, which follow, rounded up to 16 */
	SW_OBJECT_CUT = 6,    /* the chain ends: the object's type has no rule, or is unreadable */
	SW_OBJECT_MOVED = 7,  /* the only entry: a collection may have moved objects */
	SW_OBJECT_CHAINS = 8, /* bound of the chains of a sample, no kind */
};

struct sw_slot {
	uint32_t tid;      /* 0 = free */
	uint32_t timer;    /* the kernel's timer + 1, 0 = none */
	uint64_t low;      /* the thread's own stack, 0 = unknown */
	uint64_t high;
	uint64_t extra;    /* the runtime's Thread, 0 = none */
	uint32_t extra_size;
	uint32_t op;
	uint32_t ask;      /* the tool increments it */
	uint32_t answered; /* the handler sets it to ask */
	uint32_t error;    /* errno of timer_create */
	uint32_t clock;    /* the perf event whose overflow signals the thread, 0 = none */
	uint64_t fs;       /* the C library's thread structure: the fs base, or tpidr_el0 */
};

/* A wait that has not ended. */
struct sw_open {
	uint64_t since; /* CLOCK_MONOTONIC nanoseconds */
	uint64_t sp;
	uint32_t id;    /* the event's */
	uint32_t size;  /* of payload */
	uint8_t payload[SW_START_PAYLOAD];
};

/* A waiting thread. Only the thread itself writes here. */
struct sw_waiter {
	uint32_t tid; /* 0 = free */
	uint32_t depth;
	uint64_t pad[7];
	struct sw_open open[SW_NESTED];
};

/* A type of allocation or exception events that the ring had no room for. The key is a MethodTable, or a
 * hash of the name with SW_THROWN; 0 = free. size is the name's size + 1, or 0 until the name is written. */
#define SW_THROWN (1ull << 63)
struct sw_type {
	uint64_t key;
	uint64_t count;
	uint64_t bytes;
	uint32_t size;
	uint32_t pad;
	uint8_t name[SW_TYPE_NAME]; /* UTF-16 */
};

struct sw_record {
	uint64_t commit; /* position | 1 once the record is complete */
	uint64_t claim;  /* position | 2 once size is written */
	uint32_t size;   /* of the record, a multiple of SW_ALIGN */
	uint32_t tid;
	uint32_t slot;
	uint16_t why;
	uint16_t flags;
	uint64_t time;   /* CLOCK_MONOTONIC nanoseconds */
	uint32_t weight; /* 1 + the timer's overrun */
	uint32_t stack_size;
	uint32_t extra_size;
	uint32_t nanos;  /* from the handler's entry to the commit */
	uint64_t stack;  /* address of the first copied byte */
	uint32_t event; /* the runtime's id */
	uint32_t payload_size;
	uint64_t since; /* a wait: its start; SW_CLOCK: the thread's CPU time */
	uint64_t below;      /* address of the first byte of the second range */
	uint64_t below_size; /* the thread's own stack below its alternate one; 0 = none */
	uint64_t regs[SW_REGS];
	/* extra, SW_MAX_EXTRA; payload (of a sample: its objects), rounded up to 8; the stack, rounded up to 8; the second range */
};

#define SW_AT(type, field, offset) _Static_assert(offsetof(struct type, field) == (offset), #field)
SW_AT(sw_header, magic, 0);
SW_AT(sw_header, version, 8);
SW_AT(sw_header, pid, 12);
SW_AT(sw_header, base, 16);
SW_AT(sw_header, tag, 24);
SW_AT(sw_header, legacy, 28);
SW_AT(sw_header, real_time, 32);
SW_AT(sw_header, left, 36);
SW_AT(sw_header, heartbeat, 40);
SW_AT(sw_header, stale, 48);
SW_AT(sw_header, period, 56);
SW_AT(sw_header, patch, 64);
SW_AT(sw_header, timer_signal, 72);
SW_AT(sw_header, masked_low, 76);
SW_AT(sw_header, masked_high, 80);
SW_AT(sw_header, real_sent, 84);
SW_AT(sw_header, head, 88);
SW_AT(sw_header, tail, 96);
SW_AT(sw_header, signals, 104);
SW_AT(sw_header, dropped, 112);
SW_AT(sw_header, strangers, 120);
SW_AT(sw_header, timers, 128);
SW_AT(sw_header, stopped, 136);
SW_AT(sw_header, nanos, 144);
SW_AT(sw_header, reaping, 152);
SW_AT(sw_header, reap, 156);
SW_AT(sw_header, events, 220);
SW_AT(sw_header, wait_min, 224);
SW_AT(sw_header, leave, 232);
SW_AT(sw_header, helper, 236);
SW_AT(sw_header, session, 240);
SW_AT(sw_header, failed, 244);
SW_AT(sw_header, waits, 248);
SW_AT(sw_header, wait_stops, 256);
SW_AT(sw_header, locks, 264);
SW_AT(sw_header, lock_stops, 272);
SW_AT(sw_header, allocs, 280);
SW_AT(sw_header, exceptions, 288);
SW_AT(sw_header, brief, 296);
SW_AT(sw_header, brief_nanos, 304);
SW_AT(sw_header, inner, 312);
SW_AT(sw_header, early, 320);
SW_AT(sw_header, crowded, 328);
SW_AT(sw_header, missed, 336);
SW_AT(sw_header, event_nanos, 344);
SW_AT(sw_header, copies, 352);
SW_AT(sw_header, main_stack, 360);
SW_AT(sw_header, ending, 368);
SW_AT(sw_header, arch, 372);
SW_AT(sw_header, relay, 376);
SW_AT(sw_header, relay_sent, 380);
SW_AT(sw_header, relayed, 384);
SW_AT(sw_header, timer_keep, 388);
SW_AT(sw_header, heap, 392);
SW_AT(sw_header, heap_size, 400);
SW_AT(sw_header, heap_changes, 408);
SW_AT(sw_header, thread_handle, 416);
SW_AT(sw_header, chained, 420);
SW_AT(sw_header, code, 424);
SW_AT(sw_header, code_size, 432);
SW_AT(sw_header, suspended, 440);
SW_AT(sw_header, hold, 444);
SW_AT(sw_rule, table, 0);
SW_AT(sw_rule, rule, 8);
SW_AT(sw_slot, tid, 0);
SW_AT(sw_slot, timer, 4);
SW_AT(sw_slot, low, 8);
SW_AT(sw_slot, high, 16);
SW_AT(sw_slot, extra, 24);
SW_AT(sw_slot, extra_size, 32);
SW_AT(sw_slot, op, 36);
SW_AT(sw_slot, ask, 40);
SW_AT(sw_slot, answered, 44);
SW_AT(sw_slot, error, 48);
SW_AT(sw_slot, clock, 52);
SW_AT(sw_slot, fs, 56);
SW_AT(sw_open, since, 0);
SW_AT(sw_open, sp, 8);
SW_AT(sw_open, id, 16);
SW_AT(sw_open, size, 20);
SW_AT(sw_open, payload, 24);
SW_AT(sw_waiter, tid, 0);
SW_AT(sw_waiter, depth, 4);
SW_AT(sw_waiter, open, 64);
SW_AT(sw_type, key, 0);
SW_AT(sw_type, count, 8);
SW_AT(sw_type, bytes, 16);
SW_AT(sw_type, size, 24);
SW_AT(sw_type, name, 32);
SW_AT(sw_record, commit, 0);
SW_AT(sw_record, claim, 8);
SW_AT(sw_record, size, 16);
SW_AT(sw_record, tid, 20);
SW_AT(sw_record, slot, 24);
SW_AT(sw_record, why, 28);
SW_AT(sw_record, flags, 30);
SW_AT(sw_record, time, 32);
SW_AT(sw_record, weight, 40);
SW_AT(sw_record, stack_size, 44);
SW_AT(sw_record, extra_size, 48);
SW_AT(sw_record, nanos, 52);
SW_AT(sw_record, stack, 56);
SW_AT(sw_record, event, 64);
SW_AT(sw_record, payload_size, 68);
SW_AT(sw_record, since, 72);
SW_AT(sw_record, below, 80);
SW_AT(sw_record, below_size, 88);
_Static_assert(offsetof(struct sw_record, regs) == 96, "regs");
_Static_assert(sizeof(struct sw_slot) == SW_SLOT_SIZE, "slot");
_Static_assert(sizeof(struct sw_waiter) == SW_WAITER_SIZE, "waiter");
_Static_assert(16 * SW_OBJECTS == SW_MAX_PAYLOAD, "objects");
_Static_assert(sizeof(struct sw_type) == SW_TYPE_SIZE, "type");
_Static_assert(sizeof(struct sw_record) == 96 + 8 * SW_REGS, "record");
_Static_assert(sizeof(struct sw_header) <= SW_HEADER_SIZE, "header");

#endif
