/* seedwalk.h: complete mixed-mode stacks for a .NET profiler, as a C library.
 *
 * What it does: from the registers and the copied stack of a suspended thread,
 * and from what ICorProfilerInfo2::DoStackSnapshot reported of it, it makes one
 * stack of all frames, managed and unmanaged, leaf first. It opens no thread
 * and suspends nothing: that is the profiler's part.
 *
 * Order of calls: seedwalk_open; seedwalk_add_module and seedwalk_add_managed
 * (or seedwalk_scan) and seedwalk_commit, again whenever code comes or goes;
 * seedwalk_walk or seedwalk_merge for every sample; seedwalk_close.
 *
 * Thread rules. The library holds the Go runtime. Call it from threads of your
 * own that never run managed code (your sampler), never from a signal handler,
 * from an ICorProfilerCallback method, or from a thread that may be suspended by
 * you. One handle is used by one thread at a time. When the library is loaded,
 * the Go runtime installs signal handlers; a process that hosts a CLR must save
 * all signal actions before and put them back after (profiler/guard.c shows
 * how).
 *
 * While a thread is suspended, walk and merge may be called: between commit and
 * the next commit they take no lock, allocate nothing on the C heap and read
 * only the memory handed to them and the module table.
 *
 * Memory: all arrays are the caller's. The library keeps no pointer after a
 * call returns.
 *
 * Architecture: x86-64. Registers are in UNWIND_INFO order. */
#ifndef SEEDWALK_H
#define SEEDWALK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t seedwalk_handle; /* 0: none */

/* Results of calls that can fail. */
enum {
	SEEDWALK_OK = 0,
	SEEDWALK_BAD_HANDLE = -1,   /* not open, or closed already */
	SEEDWALK_BAD_ARGUMENT = -2, /* a null pointer, a length of 0, start above end */
	SEEDWALK_UNREADABLE = -3,   /* a module's file or the process's mappings */
};

/* How a frame was found (unwind.Trust). From SEEDWALK_TRUST_DOUBTFUL up it is a
 * guess: show it as one. */
enum {
	SEEDWALK_TRUST_NONE,
	SEEDWALK_TRUST_CONTEXT,
	SEEDWALK_TRUST_CFI,
	SEEDWALK_TRUST_UNWIND_INFO,
	SEEDWALK_TRUST_EPILOG,
	SEEDWALK_TRUST_CLR,
	SEEDWALK_TRUST_LEAF,
	SEEDWALK_TRUST_FRAME_POINTER,
	SEEDWALK_TRUST_SCAN,
	SEEDWALK_TRUST_DOUBTFUL = SEEDWALK_TRUST_FRAME_POINTER,
};

/* What runs in a frame (unwind.Kind). */
enum {
	SEEDWALK_NATIVE,
	SEEDWALK_MANAGED,
	SEEDWALK_STUB,
	SEEDWALK_SIGNAL,
	SEEDWALK_GAP, /* frames are missing here; seedwalk_frame.gap says why */
};

/* Whether the registers of a walk's end may seed DoStackSnapshot
 * (seed.Verdict). */
enum {
	SEEDWALK_SEED_NOT_NEEDED, /* usable: the interrupted ip is managed */
	SEEDWALK_SEED_FOUND,      /* usable */
	SEEDWALK_SEED_NO_MANAGED,
	SEEDWALK_SEED_UNSAFE,
	SEEDWALK_SEED_TRUNCATED,
	SEEDWALK_SEED_STUB_ON_TOP,   /* the interrupted ip is in the CLR's code that is no method */
	SEEDWALK_SEED_FOREIGN_STACK, /* the stack pointer is not on the thread's own stack */
};

typedef struct {
	uint64_t rip;
	uint64_t gpr[16]; /* rax rcx rdx rbx rsp rbp rsi rdi r8-r15 */
} seedwalk_registers;

typedef struct {
	uint64_t ip, sp, fp;
	uint64_t function; /* FunctionID of a managed frame, 0 if unknown */
	int32_t module;    /* id given to seedwalk_add_module, 0: none */
	uint8_t kind, trust, gap;
	uint8_t exact;     /* ip is an interrupted instruction, not a return address */
} seedwalk_frame;

/* A copied stack: bytes[0] lay at address. low and high bound the thread's
 * whole stack; 0 if unknown. */
typedef struct {
	uint64_t address;
	const uint8_t *bytes;
	uint64_t length;
	uint64_t low, high;
} seedwalk_stack;

/* One callback of DoStackSnapshot with COR_PRF_SNAPSHOT_REGISTER_CONTEXT. */
typedef struct {
	uint64_t function; /* 0: a block of unmanaged frames */
	uint64_t ip, sp, fp;
	uint64_t saved[10]; /* rbx r12 r13 r14 r15 rsi rdi, rest 0 */
} seedwalk_snapshot_frame;

typedef struct {
	int32_t frames;   /* written */
	int32_t stop;     /* walk: why it ended (unwind.Stop) */
	int32_t verdict;  /* SEEDWALK_SEED_... */
	int32_t gap;      /* merge: 0 if the stack is complete, else the first gap */
	int32_t exact;    /* walk: registers.rip is an interrupted instruction */
	int32_t doubtful; /* merge: frames found by a guess that nothing confirmed */
	seedwalk_registers registers; /* walk: where it ended; the seed, if usable */
} seedwalk_result;

/* Asks which method's code is at ip; returns its FunctionID or 0. Called by
 * seedwalk_merge on the calling thread. */
typedef uint64_t (*seedwalk_function_from_ip)(void *client, uint64_t ip);

/* A new, empty instance; 0 if 64 are open. */
extern seedwalk_handle seedwalk_open(void);
extern int seedwalk_close(seedwalk_handle h);

/* Adds an ELF image mapped at [start, end), bias above its own addresses. id is
 * any positive number of yours; frames carry it. Takes effect with commit. */
extern int seedwalk_add_module(seedwalk_handle h, int32_t id, const char *path, uint64_t start, uint64_t end, uint64_t bias);
/* Adds a range of managed code. */
extern int seedwalk_add_managed(seedwalk_handle h, uint64_t start, uint64_t end);
/* Forgets all modules and ranges; takes effect with commit. */
extern int seedwalk_clear(seedwalk_handle h);
/* Instead of the three above, on Linux: takes every module and code range of
 * this process from its mappings. Module ids are the order of their addresses. */
extern int seedwalk_scan(seedwalk_handle h);
/* Makes what was added the table of the calls to come. Never while a thread is
 * suspended. */
extern int seedwalk_commit(seedwalk_handle h);

/* Walks unmanaged frames from registers to the first managed one. */
extern int seedwalk_walk(seedwalk_handle h, const seedwalk_registers *registers, const seedwalk_stack *stack, seedwalk_frame *out, int32_t room, seedwalk_result *result);

/* Makes the merged stack. hresult and frames are what DoStackSnapshot gave. */
extern int seedwalk_merge(seedwalk_handle h, const seedwalk_registers *registers, const seedwalk_stack *stack, uint32_t hresult, const seedwalk_snapshot_frame *frames, int32_t count, seedwalk_function_from_ip from_ip, void *client, seedwalk_frame *out, int32_t room, seedwalk_result *result);

/* Names, for people: a zero-terminated text of at most room bytes. Returns its
 * length. */
extern int seedwalk_gap_name(int32_t gap, char *out, int32_t room);
extern int seedwalk_stop_name(int32_t stop, char *out, int32_t room);

#ifdef __cplusplus
}
#endif
#endif
