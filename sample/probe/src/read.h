/* Reads that the tool asks of the probe, where the kernel lets nobody else read this
 * process. The Go side mirrors it in sample/probe/read_linux.go.
 *
 * A request stands in the header's page, its answer behind the ring. Only the thread that
 * is asked takes it, and only by making its state the next one: what has been given up
 * nobody takes. */
#ifndef SEEDWALK_READ_H
#define SEEDWALK_READ_H

#include "probe.h"

enum {
	SW_READS = 2,              /* a request whose thread does not come back is not used again */
	SW_READ_AT = 2048,         /* of the first one in the file */
	SW_READ_SIZE = 64,
	SW_READ_ROOM = 1 << 20,    /* for an answer */
	SW_READ_COOKIE = 0x7ead0000, /* lower half of the signal's */
};

/* The lower two bits of a request's state. The rest is a number that no other has. */
enum { SW_READ_FREE = 0, SW_READ_ASKED = 1, SW_READ_TAKEN = 2, SW_READ_DONE = 3, SW_READ_STATES = 4 };

/* What is to be read. */
enum {
	SW_READ_MEMORY = 1,
	SW_READ_PIPED = 2,    /* by calls that every program makes: the thread has a filter of its calls, which may kill */
	SW_READ_MAPPINGS = 3, /* the text of /proc/self/maps */
};

struct sw_read {
	uint32_t state; /* a futex */
	uint32_t tid;   /* who is asked, as the target numbers it */
	uint64_t from;
	uint32_t size;  /* wanted */
	uint32_t what;
	uint32_t got;   /* without a gap */
	uint32_t nanos; /* it took */
};

SW_AT(sw_read, state, 0);
SW_AT(sw_read, tid, 4);
SW_AT(sw_read, from, 8);
SW_AT(sw_read, size, 16);
SW_AT(sw_read, what, 20);
SW_AT(sw_read, got, 24);
SW_AT(sw_read, nanos, 28);
_Static_assert(sizeof(struct sw_read) <= SW_READ_SIZE, "read");
_Static_assert(sizeof(struct sw_header) <= SW_READ_AT && SW_READ_AT + SW_READS * SW_READ_SIZE <= SW_HEADER_SIZE, "no room in the header's page");

#endif
