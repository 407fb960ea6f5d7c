/* seedwalk.h: complete mixed-mode stacks for a .NET profiler, as a C library.
 *
 * What it does: from the registers and the copied stack of a suspended thread,
 * and from what ICorProfilerInfo2::DoStackSnapshot reported of it, it makes one
 * stack of all frames, managed and unmanaged, leaf first. It opens no thread
 * and suspends nothing: that is the profiler's part.
 *
 * Order of calls: seedwalk_open; seedwalk_add_module, seedwalk_add_pe and
 * seedwalk_add_managed (or seedwalk_scan) and seedwalk_commit, again whenever
 * code comes or goes; for every sample seedwalk_walk_context or
 * seedwalk_merge_context, or both; seedwalk_close. docs/embedding.md tells it as
 * a story, capi/testdata/example.c does it.
 *
 * Thread rules. The library holds the Go runtime. Call it from threads of your
 * own that never run managed code (your sampler), never from a signal handler,
 * from an ICorProfilerCallback method, or from a thread that may be suspended by
 * you. One handle is used by one thread at a time. When the library is loaded
 * on Linux, the Go runtime installs signal handlers; a process that hosts a CLR
 * must save all signal actions before and put them back after
 * (profiler/guard.c shows how). On Windows the Go runtime, when the library is
 * loaded, changes the error mode (no crash reports, also of children started
 * meanwhile), the flags of Windows Error Reporting, the priority boost and the
 * long-path bit of the process: the first seedwalk_open puts them back as they
 * were. What stays are two vectored exception handlers and a console control
 * handler, which pass on what is not theirs.
 *
 * While a thread is suspended, the walk and merge functions may be called:
 * between commit and the next commit they take no lock, allocate nothing on the C
 * heap and read only the memory handed to them and the module table. The first
 * call that a thread makes into the library sets things up for that thread:
 * make it (seedwalk_commit will do) before anything is suspended. Everything
 * else only while nothing is suspended.
 *
 * Memory: all arrays are the caller's. The library keeps no pointer after a
 * call returns.
 *
 * Architectures: x86-64 and ARM64, ELF and PE images, each on every host.
 * General registers of x86-64 are in UNWIND_INFO order. */
#ifndef SEEDWALK_H
#define SEEDWALK_H

#include <stdint.h>
#include <string.h>

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

/* Architectures of stacks. */
enum {
	SEEDWALK_AMD64 = 1,
	SEEDWALK_ARM64 = 2,
};

/* How a context holds the registers of a thread. */
enum {
	/* CONTEXT of Windows, 1232 bytes on x86-64 and 912 on ARM64; the CLR's
	 * CONTEXT on Linux begins with the same. */
	SEEDWALK_CONTEXT_WIN32,
	/* ucontext_t of Linux, as a signal handler gets it. */
	SEEDWALK_CONTEXT_UCONTEXT,
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
	SEEDWALK_TRUST_CODE,
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
	int32_t module;    /* id given to seedwalk_add_..., 0: none */
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

/* One callback of DoStackSnapshot with COR_PRF_SNAPSHOT_REGISTER_CONTEXT;
 * seedwalk_record fills it. */
typedef struct {
	uint64_t function; /* 0: a block of unmanaged frames */
	uint64_t ip, sp, fp;
	/* x86-64: rbx r12 r13 r14 r15; on Windows then rsi rdi and
	 * SEEDWALK_SAVED_WINDOWS, else 0. ARM64: x19 to x28. */
	uint64_t saved[10];
} seedwalk_snapshot_frame;

/* In saved[7] of x86-64: rsi and rdi are nonvolatile, as on Windows. */
#define SEEDWALK_SAVED_WINDOWS ((uint64_t)(1 << 6 | 1 << 7))

typedef struct {
	int32_t frames;   /* written */
	int32_t stop;     /* walk: why it ended (unwind.Stop) */
	int32_t verdict;  /* SEEDWALK_SEED_... */
	int32_t gap;      /* merge: 0 if the stack is complete, else the first gap */
	int32_t exact;    /* walk: registers.rip is an interrupted instruction */
	int32_t doubtful; /* merge: frames found by a guess that nothing confirmed */
	/* walk: where it ended; the seed, if usable. Of ARM64 only the pc, in rip. */
	seedwalk_registers registers;
} seedwalk_result;

/* Asks which method's code is at ip; returns its FunctionID or 0. Called by
 * seedwalk_merge on the calling thread. */
typedef uint64_t (*seedwalk_function_from_ip)(void *client, uint64_t ip);

/* A new, empty instance for stacks of the machine the library runs on, or of
 * the architecture named; 0 if 64 are open or there is no such architecture. */
extern seedwalk_handle seedwalk_open(void);
extern seedwalk_handle seedwalk_open_for(int32_t architecture);
extern int seedwalk_close(seedwalk_handle h);

/* What is added takes effect with commit. id is any positive number of yours;
 * frames carry it.
 *
 * An ELF image mapped at [start, end), bias above its own addresses. */
extern int seedwalk_add_module(seedwalk_handle h, int32_t id, const char *path, uint64_t start, uint64_t end, uint64_t bias);
/* A PE image whose first byte is at base, read from its file. The file must be
 * the one that was loaded. */
extern int seedwalk_add_pe(seedwalk_handle h, int32_t id, const char *path, uint64_t base);
/* A PE image read from memory as it is mapped: image[0] lies at base, length is
 * SizeOfImage or less. The bytes are copied. In the process itself image is
 * base: the whole image must be readable. */
extern int seedwalk_add_pe_mapped(seedwalk_handle h, int32_t id, const char *name, uint64_t base, const uint8_t *image, uint64_t length);
/* A range of managed code. */
extern int seedwalk_add_managed(seedwalk_handle h, uint64_t start, uint64_t end);
/* Forgets all modules and ranges. */
extern int seedwalk_clear(seedwalk_handle h);
/* Instead of the five above: takes every module of this process from the system,
 * and as managed code what is executable and belongs to none. It replaces what
 * was added until the next clear. Module ids are the order of their addresses,
 * from 1. */
extern int seedwalk_scan(seedwalk_handle h);
/* Makes what was added the table of the calls to come. Never while a thread is
 * suspended. */
extern int seedwalk_commit(seedwalk_handle h);

/* Walks unmanaged frames from the registers in a context (SEEDWALK_CONTEXT_...)
 * of size bytes to the first managed frame. If seed is not null it is a CONTEXT in
 * the layout of Windows, whatever that of the context: the registers of the
 * walk's end are put into it, the rest stays. Copy the thread's own CONTEXT
 * there first; hand it to DoStackSnapshot if result->verdict allows. */
extern int seedwalk_walk_context(seedwalk_handle h, int32_t layout, const void *context, uint64_t size, const seedwalk_stack *stack, seedwalk_frame *out, int32_t room, seedwalk_result *result, void *seed);
/* The same from the general registers alone, x86-64 only. */
extern int seedwalk_walk(seedwalk_handle h, const seedwalk_registers *registers, const seedwalk_stack *stack, seedwalk_frame *out, int32_t room, seedwalk_result *result);

/* Makes the merged stack. hresult and frames are what DoStackSnapshot gave. */
extern int seedwalk_merge_context(seedwalk_handle h, int32_t layout, const void *context, uint64_t size, const seedwalk_stack *stack, uint32_t hresult, const seedwalk_snapshot_frame *frames, int32_t count, seedwalk_function_from_ip from_ip, void *client, seedwalk_frame *out, int32_t room, seedwalk_result *result);
/* The same from the general registers alone, x86-64 only. */
extern int seedwalk_merge(seedwalk_handle h, const seedwalk_registers *registers, const seedwalk_stack *stack, uint32_t hresult, const seedwalk_snapshot_frame *frames, int32_t count, seedwalk_function_from_ip from_ip, void *client, seedwalk_frame *out, int32_t room, seedwalk_result *result);

/* Names, for people: a zero-terminated text of at most room bytes. Returns its
 * length. */
extern int seedwalk_gap_name(int32_t gap, char *out, int32_t room);
extern int seedwalk_stop_name(int32_t stop, char *out, int32_t room);
extern int seedwalk_verdict_name(int32_t verdict, char *out, int32_t room);

/* For DoStackSnapshot's callback: writes one down, without a call into the
 * library. context is the callback's, a CONTEXT of the machine this is compiled
 * for. */
static inline void seedwalk_record(seedwalk_snapshot_frame *frame, uint64_t function, const void *context)
{
	const uint8_t *from = (const uint8_t *)context;
	memset(frame, 0, sizeof *frame);
	frame->function = function;
#if defined(__aarch64__) || defined(_M_ARM64)
	memcpy(&frame->ip, from + 0x108, 8);
	memcpy(&frame->sp, from + 0x100, 8);
	memcpy(&frame->fp, from + 0xf0, 8);
	memcpy(frame->saved, from + 0xa0, 10 * 8); /* x19 to x28 */
#else
	memcpy(&frame->ip, from + 0xf8, 8);
	memcpy(&frame->sp, from + 0x98, 8);
	memcpy(&frame->fp, from + 0xa0, 8);
	memcpy(&frame->saved[0], from + 0x90, 8);     /* rbx */
	memcpy(&frame->saved[1], from + 0xd8, 4 * 8); /* r12 to r15 */
#ifdef _WIN32
	memcpy(&frame->saved[5], from + 0xa8, 2 * 8); /* rsi rdi */
	frame->saved[7] = SEEDWALK_SAVED_WINDOWS;
#endif
#endif
}

#ifdef __cplusplus
}
#endif
#endif
