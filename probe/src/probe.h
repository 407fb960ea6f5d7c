/* What the probe and the tool share: one file in memory, mapped by both. The Go
 * side mirrors it in probe/layout.go; SW_AT lines are read by its test.
 *
 * The file is a header, the slots, the ring. The target maps the ring twice, one
 * behind the other, so that every record is contiguous there. */
#ifndef SEEDWALK_PROBE_H
#define SEEDWALK_PROBE_H

#include <stddef.h>
#include <stdint.h>

enum {
	SW_VERSION = 1,
	SW_HEADER_SIZE = 4096,
	SW_SLOTS = 4096,
	SW_SLOT_SIZE = 64,
	SW_RING_SIZE = 1 << 21,
	SW_MAX_STACK = SW_RING_SIZE / 2, /* copied of one stack */
	SW_MAX_CHECKED = 1 << 16,        /* of one that is not the thread's own */
	SW_MAX_EXTRA = 192,              /* of the runtime's Thread */
	SW_ALIGN = 64,
	SW_REAP = 16,
	SW_RED_ZONE = 128,
	SW_REGS = 17,                    /* r8-r15 rdi rsi rbp rbx rdx rax rcx rsp rip */
};

#define SW_MAGIC 0x31656b6c61776553ull /* "Sewalke1" */

/* What the tool asks of a thread, in its slot. */
enum {
	SW_OP_SAMPLE = 1,
	SW_OP_ARM = 2,    /* make the thread's processor-time timer, copy nothing */
	SW_OP_DISARM = 3,
	SW_OP_LEAVE = 4,  /* put everything back */
};

/* Why a record was made. */
enum {
	SW_ASKED = 1,
	SW_TIMER = 2,
	SW_ARMED = 3,
};

/* Flags of a record. */
enum {
	SW_FOREIGN = 1, /* sp is not on the stack that the slot names: a checked copy */
	SW_CUT = 2,     /* the copy ends before the stack does */
	SW_PATCHED = 4, /* a return address is the runtime's: the Thread's bytes are there */
	SW_ON_ALT = 8,  /* the thread was on its alternate stack */
};

struct sw_header {
	uint64_t magic;
	uint32_t version;
	uint32_t pid;        /* as the target sees itself */
	uint64_t base;       /* where the target has mapped the header */
	uint32_t tag;        /* upper half of every cookie */
	uint32_t legacy;     /* SIGURG, 0 = it was taken */
	uint32_t real_time;  /* a real-time signal, 0 = none is free */
	uint32_t left;       /* everything is put back */
	uint64_t heartbeat;  /* CLOCK_MONOTONIC nanoseconds, the tool's */
	uint64_t stale;      /* nanoseconds without a heartbeat that mean it is gone */
	uint64_t period;     /* of timers, nanoseconds of processor time */
	uint64_t patch;      /* what the runtime writes over a return address, 0 = unknown */
	uint32_t timer_signal;
	uint32_t masked_low; /* signals whose masks hold ours: bit signal-1 */
	uint32_t masked_high;
	uint32_t real_sent;  /* the tool has sent the real-time signal */
	uint64_t head;       /* bytes ever claimed */
	uint64_t tail;       /* bytes ever freed by the tool */
	uint64_t signals;    /* times a handler ran */
	uint64_t dropped;    /* samples for which there was no room */
	uint64_t strangers;  /* signals that nobody of ours sent */
	uint64_t timers;     /* armed now */
	uint64_t stopped;    /* timers stopped since the tool was gone */
	uint64_t nanos;      /* in the handler, all together */
	uint32_t reaping;    /* there is something in reap */
	uint32_t reap[SW_REAP]; /* slots + 1 of threads that have ended: their timers have not */
};

struct sw_slot {
	uint32_t tid;      /* 0 = free */
	uint32_t timer;    /* the kernel's timer + 1, 0 = none */
	uint64_t low;      /* the thread's own stack, 0 = not known */
	uint64_t high;
	uint64_t extra;    /* the runtime's Thread, 0 = none */
	uint32_t extra_size;
	uint32_t op;
	uint32_t ask;      /* the tool counts it up */
	uint32_t answered; /* the handler makes it equal */
	uint32_t error;    /* errno of timer_create */
	uint32_t pad;
	uint64_t fs;       /* the thread's fs base */
};

struct sw_record {
	uint64_t commit; /* position | 1 once all is written */
	uint64_t claim;  /* position | 2 as soon as size is */
	uint32_t size;   /* of the record, a multiple of SW_ALIGN */
	uint32_t tid;
	uint32_t slot;
	uint16_t why;
	uint16_t flags;
	uint64_t time;   /* CLOCK_MONOTONIC nanoseconds */
	uint32_t weight; /* 1 + what the timer overran */
	uint32_t stack_size;
	uint32_t extra_size;
	uint32_t nanos;  /* from the handler's entry to the commit */
	uint64_t stack;  /* address of the first copied byte */
	uint64_t regs[SW_REGS];
	uint64_t pad;
	/* extra, rounded up to 8; then the stack */
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
SW_AT(sw_slot, fs, 56);
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
SW_AT(sw_record, regs, 64);
_Static_assert(sizeof(struct sw_slot) == SW_SLOT_SIZE, "slot");
_Static_assert(sizeof(struct sw_record) == 208, "record");
_Static_assert(sizeof(struct sw_header) <= SW_HEADER_SIZE, "header");

#endif
