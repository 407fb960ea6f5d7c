/* Reads that the probe serves, where the kernel does not let the tool read this process.
 * sample/probe/read_linux.go mirrors these structures.
 *
 * A request is in the header's page, its answer behind the ring. Only the requested thread takes it, by
 * moving its state to the next one. A withdrawn request has another state, so that no thread takes it. */
#ifndef SEEDWALK_READ_H
#define SEEDWALK_READ_H

#include "probe.h"

enum {
	SW_READS = 2,              /* a request whose thread never answers is lost */
	SW_READ_AT = 2048,         /* offset of the first request in the file */
	SW_READ_SIZE = 64,
	SW_READ_ROOM = 1 << 20,    /* for an answer */
	SW_READ_COOKIE = 0x7ead0000, /* lower half of the signal's cookie */
};

/* The lower two bits of a request's state. The other bits are a unique number. */
enum { SW_READ_FREE = 0, SW_READ_ASKED = 1, SW_READ_TAKEN = 2, SW_READ_DONE = 3, SW_READ_STATES = 4 };

/* What to read. */
enum {
	SW_READ_MEMORY = 1,
	SW_READ_PIPED = 2,    /* by common system calls only: the thread has a system call filter, which may kill it */
	SW_READ_MAPPINGS = 3, /* the text of /proc/self/maps */
};

struct sw_read {
	uint32_t state; /* a futex */
	uint32_t tid;   /* the requested thread, by the target's number */
	uint64_t from;
	uint32_t size;  /* wanted */
	uint32_t what;
	uint32_t got;   /* bytes without a gap */
	uint32_t nanos; /* duration */
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
