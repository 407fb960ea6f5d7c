/* seedwalk.h: complete mixed-mode stacks for a .NET profiler, as a C library.
 *
 * What it does: it makes one stack of all frames of a suspended thread, managed and unmanaged, leaf first.
 * Its input is the thread's registers, a copy of its stack, and the frames that
 * ICorProfilerInfo2::DoStackSnapshot reported. It suspends no thread. The profiler does that, or the
 * sampler at the end of this file, which has rules of its own.
 *
 * Order of calls: seedwalk_open; seedwalk_scan (or seedwalk_add_...) and seedwalk_commit, again whenever a
 * result says that a rescan is due; for every sample seedwalk_walk, seedwalk_merge, or both;
 * seedwalk_close. docs/embedding.md explains the steps, and capi/testdata/example.c is a complete program.
 *
 * Stability. SEEDWALK_ABI grows when a program that was compiled against an older header no longer works.
 * Each structure that is passed by pointer begins with its size, so that fields can be added without
 * growing it:
 *   - set size to sizeof of the structure, and the rest to 0 before you fill it;
 *   - if size is smaller than the library's, the missing fields count as 0; if required fields are missing,
 *     the call returns SEEDWALK_SHORT_STRUCT;
 *   - if size is larger, the part that the library does not know must be 0, or the call returns
 *     SEEDWALK_UNKNOWN_FIELD; in a result that part is set to 0.
 * seedwalk_frame and seedwalk_snapshot_frame are rows of arrays and do not grow.
 *
 * Thread rules. The library contains the Go runtime. Call it only from threads of your own that never run
 * managed code (your sampler). Never call it from a signal handler, from an ICorProfilerCallback method, or
 * from a thread that you may suspend. Only one thread may use a handle at a time; a second thread gets
 * SEEDWALK_BUSY. There is one exception, on Linux: a thread may walk its own stack inside a callback, with
 * all signals blocked. See "Walk now" in docs/embedding.md.
 *
 * What loading changes. On Linux the Go runtime installs signal handlers when the library is loaded. The
 * library saves the previous handlers and restores them in the first seedwalk_open, except for SIGURG.
 * Handlers that were set in between stay. So open a handle before your Initialize returns (let it wait for
 * your sampler's thread). On Windows the Go runtime changes four settings of the process: the error mode,
 * the flags of Windows Error Reporting, the priority boost, and the long-path bit. The error mode turns
 * crash reports off, also of children that start before seedwalk_open. The first seedwalk_open restores
 * all four. Two vectored exception handlers and a console control handler stay; they ignore events that
 * are not Go's.
 *
 * While a thread is suspended, only seedwalk_walk and seedwalk_walk_batch may be called: they take no
 * lock, allocate nothing on the C heap, and read only the caller's memory and the module table. The first
 * call by a thread sets up state for that thread: make it (seedwalk_commit will do) before anything is
 * suspended. seedwalk_merge reads the runtime's or the system's tables: call it after everything has been
 * resumed.
 *
 * Memory: the caller owns all arrays. The library keeps no pointer after a call returns.
 *
 * Architectures: x86-64 and ARM64, ELF and PE images, each on every host. */
#ifndef SEEDWALK_H
#define SEEDWALK_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t seedwalk_handle; /* 0: none */

/* The version of the interface in this header: see seedwalk_version. */
#define SEEDWALK_ABI 1

/* Results of calls that can fail; seedwalk_error_text has a text for each. */
enum {
	SEEDWALK_OK = 0,
	SEEDWALK_BAD_HANDLE = -1, /* never opened, or closed */
	SEEDWALK_BAD_ARGUMENT = -2,  /* a null pointer, a length of 0, start above end */
	SEEDWALK_UNREADABLE = -3,    /* a module's file or the process's mappings */
	SEEDWALK_SHORT_STRUCT = -4,  /* size is less than the fields that must be there */
	SEEDWALK_UNKNOWN_FIELD = -5, /* a field unknown to this library is not 0 */
	SEEDWALK_BUSY = -6, /* another thread is using the same handle */
	SEEDWALK_TOO_MANY = -7,      /* 64 handles are open */
	SEEDWALK_NO_MODULE = -8,     /* no module of the last commit has this id */
	SEEDWALK_NOT_OPEN = -9, /* the sampler was never opened, or is closed */
	SEEDWALK_SECOND = -10, /* the process already has, or had, a sampler */
	SEEDWALK_WRONG_THREAD = -11, /* this thread runs managed code */
	SEEDWALK_OLD_RUNTIME = -12, /* it lacks an interface that the sampler needs */
	SEEDWALK_NOT_FORWARDED = -13, /* a callback is missing: seedwalk_sampler_problem returns which */
	SEEDWALK_NO_EVENTS = -14, /* SetEventMask was called without SEEDWALK_SAMPLER_EVENTS */
	SEEDWALK_REFUSED = -15, /* the runtime permanently refuses to walk */
	SEEDWALK_SYSTEM = -16, /* the system refuses an operation: seedwalk_sampler_problem returns which */
	SEEDWALK_UNSUPPORTED = -17,  /* there is no sampler for this architecture */
	SEEDWALK_FULL = -18, /* no room for another copy: it is dropped and counted */
	/* Linux: the handler of SIGRTMIN+5 was replaced after open, and does not call ours: no thread would
	 * answer */
	SEEDWALK_TAKEN = -19,
	SEEDWALK_NO_ENGINE = -20,   /* the client library cannot start its helper process */
	SEEDWALK_ENGINE_GONE = -21, /* the helper has ended, or hangs: open again */
};

/* Architectures of stacks. */
enum {
	SEEDWALK_AMD64 = 1,
	SEEDWALK_ARM64 = 2,
};

/* The layout of a context, which holds the registers of a thread. */
enum {
	/* CONTEXT of Windows, 1232 bytes on x86-64 and 912 on ARM64; the CLR's CONTEXT on Linux begins with
	 * the same fields. */
	SEEDWALK_CONTEXT_WIN32,
	/* ucontext_t of Linux, as passed to a signal handler. */
	SEEDWALK_CONTEXT_UCONTEXT,
};

/* How a frame was found (unwind.Trust). From SEEDWALK_TRUST_DOUBTFUL up it is a guess: display it as one. */
enum {
	SEEDWALK_TRUST_NONE,
	SEEDWALK_TRUST_CONTEXT,       /* the thread's own registers */
	SEEDWALK_TRUST_CFI,           /* DWARF call frame information */
	SEEDWALK_TRUST_UNWIND_INFO,   /* PE unwind data */
	SEEDWALK_TRUST_EPILOG,        /* the instructions of an x64 epilog */
	SEEDWALK_TRUST_CLR,           /* reported by the CLR */
	SEEDWALK_TRUST_LEAF,          /* the leaf rule of the platform, or proven by the code */
	SEEDWALK_TRUST_FRAME_POINTER, /* a checked frame pointer */
	/* the code was followed in one direction; the number before it is not used */
	SEEDWALK_TRUST_CODE = SEEDWALK_TRUST_FRAME_POINTER + 2,
	SEEDWALK_TRUST_OUTSIDE,       /* in no known module or managed code */
	SEEDWALK_TRUST_DOUBTFUL = SEEDWALK_TRUST_FRAME_POINTER,
};

/* The kind of code of a frame (unwind.Kind). */
enum {
	SEEDWALK_NATIVE,
	SEEDWALK_MANAGED,
	SEEDWALK_STUB,
	SEEDWALK_SIGNAL,
	SEEDWALK_GAP, /* frames are missing here; seedwalk_frame.gap is the reason */
};

/* Why frames are missing (merge.Gap): seedwalk_frame.gap of a frame of kind SEEDWALK_GAP, and the first
 * gap of a stack in seedwalk_result.gap and seedwalk_stack.gap. New values may be added at the end;
 * seedwalk_gap_name returns a name for each. */
enum {
	SEEDWALK_GAP_NONE,                    /* the stack is complete */
	SEEDWALK_GAP_NO_ANSWER,               /* the thread did not answer in time: its unmanaged top is unknown */
	SEEDWALK_GAP_THREAD_GONE,             /* the thread ended */
	SEEDWALK_GAP_FOREIGN_STACK,           /* it ran on a stack other than its own, such as a fiber's */
	SEEDWALK_GAP_STACK_TRUNCATED,         /* the stack is larger than the copy */
	SEEDWALK_GAP_NO_UNWIND_INFO,          /* no unwind data covers an ip */
	SEEDWALK_GAP_BAD_UNWIND_INFO,         /* unwind data is malformed or contradicts the stack */
	SEEDWALK_GAP_UNSUPPORTED_UNWIND_INFO, /* unwind data of a kind that is not supported */
	SEEDWALK_GAP_UNREADABLE_STACK,        /* a word of the stack was not copied */
	SEEDWALK_GAP_NO_PROGRESS,             /* the walk looped */
	SEEDWALK_GAP_TOO_MANY_FRAMES,         /* more than a stack may have, or more than the room */
	SEEDWALK_GAP_LOST_MANAGED_FRAME,      /* the unmanaged walk ended before a frame that the CLR reported */
	SEEDWALK_GAP_MANAGED_FRAME_MISMATCH,  /* the walk passed a frame that the CLR reported */
	SEEDWALK_GAP_CLR_REFUSED,             /* DoStackSnapshot refused although there are managed frames */
	SEEDWALK_GAP_CLR_REPORT_CUT,          /* the CLR's report ends early */
	SEEDWALK_GAP_STUB_ON_TOP,             /* interrupted where no return address is on the stack */
	SEEDWALK_GAP_RUNTIME_NOT_READABLE,    /* managed code of a runtime whose tables cannot be read (yet) */
	SEEDWALK_GAP_CODE_UNLOADED,           /* the runtime has freed the code before the walk */
};

/* Whether the registers of a walk's end may seed DoStackSnapshot (seed.Verdict). This is for Windows: on
 * Linux, the CLR ignores the seed of a thread that SuspendRuntime has stopped.
 * On Windows, seedwalk_walk reads the code before the seed's ip. Without a call there, the seed is unsafe. If
 * you walk long after the sample, the runtime may have freed that code, and the seed is then unsafe too. With
 * SEEDWALK_OTHER_PROCESS, seedwalk_walk cannot read the code. Check yourself that a call precedes the seed's
 * ip before you pass it to the CLR. */
enum {
	SEEDWALK_SEED_NOT_NEEDED,    /* the interrupted ip is managed: DoStackSnapshot needs no seed */
	SEEDWALK_SEED_FOUND,         /* usable */
	SEEDWALK_SEED_NO_MANAGED,    /* the whole stack has no managed frame */
	SEEDWALK_SEED_UNSAFE,        /* reached over a doubtful frame, or a register is unknown */
	SEEDWALK_SEED_TRUNCATED,     /* the walk ended before a managed frame */
	SEEDWALK_SEED_STUB_ON_TOP,   /* the interrupted ip is in code of the CLR that is not a method */
	SEEDWALK_SEED_FOREIGN_STACK, /* the stack pointer is not on the thread's own stack */
};

typedef struct {
	uint64_t ip, sp, fp;
	uint64_t function; /* FunctionID of a managed frame, 0 if unknown */
	int32_t module;    /* id passed to seedwalk_add_..., 0: none */
	uint8_t kind, trust, gap;
	uint8_t exact;     /* ip is an interrupted instruction, not a return address */
} seedwalk_frame;

/* Returns the FunctionID of the method whose code contains ip, or 0: ICorProfilerInfo::GetFunctionFromIP.
 * It runs on the calling thread. While the thread is suspended (the CLR permits that), seedwalk_walk calls
 * it for the interrupted ip, and on ARM64 for the return address that a seed's frame record contains.
 * seedwalk_merge calls it for any ip. Without it, stubs of the CLR count as methods, so seedwalk_walk may
 * return a seed where SEEDWALK_SEED_STUB_ON_TOP would be right. */
typedef uint64_t (*seedwalk_function_from_ip)(void *client, uint64_t ip);

/* The data of one interrupted thread. */
typedef struct {
	uint32_t size;
	int32_t layout;      /* SEEDWALK_CONTEXT_... of context */
	const void *context; /* its registers */
	uint64_t context_size;
	uint64_t address;     /* address of stack[0] */
	const uint8_t *stack; /* the copied stack */
	uint64_t length;
	/* The rest is 0 if unknown. */
	uint64_t low, high; /* bounds of the thread's whole stack */
	uint64_t thread;    /* ThreadID; needed for return addresses that the runtime has replaced */
	seedwalk_function_from_ip from_ip;
	void *client;       /* the function's first argument */
	uint32_t truncated; /* the stack is larger than the copy */
	uint32_t reserved;
} seedwalk_sample;

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

/* seedwalk_walk: from a sample to the first managed frame. */
typedef struct {
	uint32_t size;
	int32_t room;                  /* of frames; 512 are enough */
	const seedwalk_sample *sample;
	/* Must not overlap what the sample points to. Frames from result.frames on are undefined. */
	seedwalk_frame *frames;
	/* If not null, a CONTEXT in the layout of Windows, whatever the sample's layout. The registers at the
	 * walk's end are written into it; the rest is unchanged. Copy the thread's own CONTEXT there first,
	 * and pass it to DoStackSnapshot if result.verdict allows that. */
	void *seed;
	uint64_t seed_size;            /* at least 1232 on x86-64, 912 on ARM64 */
} seedwalk_walk_request;

/* seedwalk_merge: a sample and the report of DoStackSnapshot about it. */
typedef struct {
	uint32_t size;
	int32_t room; /* of frames; 16384 are enough; with fewer, the stack ends in a gap */
	const seedwalk_sample *sample;
	seedwalk_frame *frames;
	const seedwalk_snapshot_frame *reported;
	int32_t count;    /* of reported */
	uint32_t hresult; /* of DoStackSnapshot; E_FAIL if it was not called */
} seedwalk_merge_request;

typedef struct {
	uint32_t size;
	int32_t frames;   /* written */
	int32_t stop;     /* walk: why it ended (unwind.Stop) */
	int32_t verdict;  /* SEEDWALK_SEED_... */
	int32_t gap;      /* merge: 0 if the stack is complete, else the first gap */
	int32_t exact;    /* walk: ip is an interrupted instruction */
	int32_t doubtful; /* merge: guessed frames that nothing confirmed */
	/* the table lacks code that was met: scan and commit again when nothing is suspended, at most a few
	 * times per second */
	int32_t rescan;
	int32_t hidden;      /* merge: managed frames and stubs missing from the CLR's report */
	int32_t waiting;     /* merge: leading frames in which the thread waits for the suspension to end */
	uint64_t ip, sp, fp; /* walk: the position at its end */
	/* walk: the thread is in the loader of Windows, and DoStackSnapshot may wait for the loader's locks:
	 * do not call it now, take another sample */
	int32_t loading;
	int32_t reserved;
} seedwalk_result;

/* seedwalk_walk_batch: many walks in one call. results[i] is the result of requests[i], and errors[i] is
 * what seedwalk_walk would return. */
typedef struct {
	uint32_t size;
	int32_t count;                               /* of each of the arrays */
	const seedwalk_walk_request *const *requests;
	seedwalk_result *const *results;
	int32_t *errors;
} seedwalk_batch;

/* A module of the last commit. */
typedef struct {
	uint32_t size;
	int32_t id;
	uint64_t start, end, bias; /* mapped at [start, end); bias is added to the image's own addresses */
	char build_id[64];         /* hexadecimal; "" if the image has none */
	char path[1024];           /* truncated if longer */
} seedwalk_module;

/* flags of seedwalk_options */
enum {
	/* stacks of another process: the tables of this process's runtime are not used */
	SEEDWALK_OTHER_PROCESS = 1,
};

typedef struct {
	uint32_t size;
	int32_t architecture; /* SEEDWALK_AMD64, SEEDWALK_ARM64; 0: of the machine that the library runs on */
	uint32_t flags;
	uint32_t reserved;
} seedwalk_options;

/* Returns the SEEDWALK_ABI of the loaded library. It writes the library's version to out as a text that
 * ends with a zero byte, of at most room bytes with the zero. out may be null. Call it at any time. */
extern uint32_t seedwalk_version(char *out, int32_t room);

/* Makes a new, empty instance. options may be null. */
extern int seedwalk_open(const seedwalk_options *options, seedwalk_handle *handle);
extern int seedwalk_close(seedwalk_handle h);

/* Reads every module of this process from the system, and treats executable memory outside of them as
 * managed code. It replaces everything that was added until the next clear. Module ids are numbers from 1;
 * a module keeps its id while it is loaded. */
extern int seedwalk_scan(seedwalk_handle h);

/* Instead of a scan. id is any positive number; frames refer to it.
 *
 * An ELF image mapped at [start, end); bias is added to its own addresses. */
extern int seedwalk_add_module(seedwalk_handle h, int32_t id, const char *path, uint64_t start, uint64_t end, uint64_t bias);
/* A PE image whose first byte is at base, read from its file. The file must be
 * the one that was loaded. */
extern int seedwalk_add_pe(seedwalk_handle h, int32_t id, const char *path, uint64_t base);
/* A PE image read from memory as it is mapped: image[0] is at base, length is SizeOfImage or less. The
 * bytes are copied. In the process itself, image equals base, and the whole image must be readable. */
extern int seedwalk_add_pe_mapped(seedwalk_handle h, int32_t id, const char *name, uint64_t base, const uint8_t *image, uint64_t length);
/* A range of managed code. */
extern int seedwalk_add_managed(seedwalk_handle h, uint64_t start, uint64_t end);
/* Removes all modules and ranges. */
extern int seedwalk_clear(seedwalk_handle h);

/* Makes the scanned or added modules the table of later calls, and finds the CLR's stubs and code tables in
 * it. It also lets the library collect its garbage. If nothing has changed, it only collects garbage, so
 * call it at intervals even then. Never call it while a thread is suspended. */
extern int seedwalk_commit(seedwalk_handle h);
/* Describes a module of the last commit. */
extern int seedwalk_get_module(seedwalk_handle h, int32_t id, seedwalk_module *out);

/* Walks unmanaged frames to the first managed one. */
extern int seedwalk_walk(seedwalk_handle h, const seedwalk_walk_request *request, seedwalk_result *result);
/* The same for many samples. The cost of a call into the library, more than that of ten frames, is paid
 * once. It returns SEEDWALK_OK even if some walks failed: see errors. */
extern int seedwalk_walk_batch(seedwalk_handle h, const seedwalk_batch *batch);
/* Makes the merged stack. Call it while nothing is suspended: it may read the code of methods. */
extern int seedwalk_merge(seedwalk_handle h, const seedwalk_merge_request *request, seedwalk_result *result);

/* ---- The sampler: the whole protocol, for x86-64 Linux and Windows ----
 *
 * It uses the profiler's own ICorProfilerInfo. It keeps no thread and no timer: the profiler provides
 * both.
 *   1. Initialize calls seedwalk_sampler_open, and SetEventMask with (at least)
 *      SEEDWALK_SAMPLER_EVENTS; Shutdown calls seedwalk_sampler_close.
 *   2. Forward five callbacks; more are optional. Each takes one call that takes no lock, allocates nothing,
 *      and does not enter Go.
 *   3. A thread of the profiler's own, that never runs managed code, calls
 *      seedwalk_sampler_sample as often as there shall be samples.
 * capi/examples/smallest_sampler.cpp is a complete example. A process has at most one sampler in its
 * lifetime: two would suspend each other. The client library (capi/client) has the same functions; there a
 * sampler can be opened again after its close. */

/* COR_PRF_MONITOR_MODULE_LOADS, COR_PRF_MONITOR_THREADS, COR_PRF_ENABLE_STACK_SNAPSHOT */
#define SEEDWALK_SAMPLER_EVENTS 0x10000204u

typedef struct {
	uint32_t size;
	uint32_t flags;       /* 0 */
	void *info;           /* the argument of Initialize: ICorProfilerInfo of any version, or IUnknown */
	uint64_t stack_bytes; /* room for one copied stack; 0: 1 MiB */
} seedwalk_sampler_options;

/* Call it in Initialize; it takes 1 to 100 ms. Results other than SEEDWALK_OK leave the process unchanged:
 * let Initialize fail then, and the program runs without the profiler. Even if you will not sample, call
 * it or seedwalk_open before Initialize returns, because that restores the signal handlers that Go's start
 * has replaced. */
extern int seedwalk_sampler_open(const seedwalk_sampler_options *options);
/* Waits until a running seedwalk_sampler_sample has returned: a few milliseconds, at most 3 s. Later calls
 * do not sample; the forwarding functions do nothing. */
extern int seedwalk_sampler_close(void);

/* Forwarded callbacks: ICorProfilerCallback's arguments, in its order. Two of them wait. ThreadDestroyed
 * waits while the destroyed thread is being walked (on Linux while the runtime is suspended).
 * ModuleUnloadStarted waits for at most 1 s while names are looked up, because the runtime takes no
 * reference. The others never wait. */
extern int seedwalk_sampler_thread_created(uint64_t thread);                       /* ThreadCreated */
/* ThreadAssignedToOSThread */
extern int seedwalk_sampler_thread_assigned(uint64_t thread, uint32_t os_thread);
extern int seedwalk_sampler_thread_destroyed(uint64_t thread); /* ThreadDestroyed */
extern int seedwalk_sampler_module_loaded(uint64_t module);    /* ModuleLoadFinished */
extern int seedwalk_sampler_module_unloading(uint64_t module); /* ModuleUnloadStarted */
/* Optional: ThreadNameChanged with its UTF-16 text. If you monitor JIT compilation anyway, also
 * JITCompilationFinished, DynamicMethodJITCompilationFinished, and DynamicMethodUnloaded; without them,
 * new code is found when a walk meets it. */
extern int seedwalk_sampler_thread_named(uint64_t thread, uint32_t units, const void *name);
extern int seedwalk_sampler_code_changed(uint64_t function);

/* One frame of a stack with its names. Missing texts are "". */
typedef struct {
	seedwalk_frame frame; /* frame.module is a number from 1, valid while the module is loaded */
	/* of a managed frame: Namespace.Type<int>.Method, for overloads with (string, int); of others: the
	 * function according to the module's own symbols or exports */
	const char *method;
	const char *path;     /* of the module's file; for a managed frame, of the assembly's */
	const char *build_id; /* of a native module, hexadecimal */
} seedwalk_named_frame;

/* The source position of a frame of managed code, if requested. */
typedef struct {
	const char *file; /* from the module's Portable PDB, next to or inside the module, or "" */
	int32_t line;     /* 0 if unknown */
	int32_t column;
	int32_t il_offset; /* in the method's IL; -1 if unknown: code that the runtime made, or ReJIT */
	int32_t reserved;
} seedwalk_source;

/* One stack, leaf first. The library owns all pointers; they are valid until the next call of
 * seedwalk_sampler_sample. */
typedef struct {
	uint32_t size;
	int32_t count;           /* of frames */
	const seedwalk_named_frame *frames;
	const char *thread_name; /* "" if it has none */
	uint64_t thread;         /* ThreadID */
	uint64_t os_thread;      /* the system's number */
	uint64_t time_ns; /* when it was taken, nanoseconds since 1970; of a copy: when it was walked */
	/* CPU time of the thread since its last sample. Of a new thread: since the last round, at most the time
	 * that passed. 0 for a copy, and for the first sample of a thread that was there in the first round */
	uint64_t cpu_ns;
	uint64_t tag; /* of a copy: the argument of seedwalk_sampler_copy; else 0 */
	int32_t gap;             /* 0 if it is complete, else the first gap: seedwalk_gap_name */
	int32_t doubtful; /* guessed frames that nothing confirmed */
	int32_t waiting;         /* leading frames in which the thread waits for the suspension to end */
	uint32_t hresult;        /* of DoStackSnapshot */
	const seedwalk_source *sources; /* one per frame; null without SEEDWALK_SOURCES */
	/* For each frame in a module, its ip in the module's own numbers: on Linux those of its symbols and of
	 * addr2line, on Windows the RVA; 0 for other frames. If a frame is not exact, this is the return
	 * address: look up the address before it. In a library that lacks this field, size ends here: check
	 * size first. */
	const uint64_t *addresses;
	uint64_t wall_ns; /* elapsed time that the sample represents; 0 for a copy or if unknown */
} seedwalk_stack;

/* Called for each stack on the calling thread, when nothing is suspended. It may do anything except call
 * the sampler. */
typedef void (*seedwalk_on_stack)(void *client, const seedwalk_stack *stack);

typedef struct {
	uint32_t size;
	uint32_t flags;             /* SEEDWALK_COPIES, SEEDWALK_SOURCES */
	seedwalk_on_stack on_stack; /* null: fetch the stacks with seedwalk_sampler_next */
	void *client;               /* its first argument */
	uint64_t thread;            /* the only ThreadID to sample; 0: all threads in turn, at most 32 per call */
} seedwalk_sampler_request;

/* flags of seedwalk_sampler_request */
enum {
	SEEDWALK_COPIES = 1, /* no samples: the copies of seedwalk_sampler_copy */
	/* IL offsets and lines of managed frames: a few microseconds for each new address */
	SEEDWALK_SOURCES = 2,
};

typedef struct {
	uint32_t size;
	int32_t stacks;   /* of this call */
	int32_t complete; /* of those: without a gap */
	int32_t threads;  /* live threads */
	/* Since open: */
	uint64_t suspensions; /* of the runtime, or of a thread */
	uint64_t retries;     /* suspensions that had to be repeated */
	uint64_t gone;        /* threads that ended before they could be sampled */
	uint64_t denied;      /* threads that the system refuses to suspend */
	uint64_t dropped;     /* copies for which there was no room */
} seedwalk_sampler_result;

/* Takes one sample of each thread (or of the requested one) and returns the merged stacks. It chooses the
 * method that suits the runtime, and tries again if the runtime is not ready. There are no stacks before
 * the runtime has threads. Call it on one thread at a time. Never call it in a callback or on a thread that
 * runs managed code. result may be null. */
extern int seedwalk_sampler_sample(const seedwalk_sampler_request *request, seedwalk_sampler_result *result);

/* Returns the next stack of the last call without on_stack, or SEEDWALK_OK with *stack null after the last
 * one. Call it on the thread that sampled. */
extern int seedwalk_sampler_next(const seedwalk_stack **stack);

/* Describes the last failure of seedwalk_sampler_open or seedwalk_sampler_sample in words. */
extern int seedwalk_sampler_problem(char *out, int32_t room);

/* ---- Stacks of the current thread, from inside a callback ----
 *
 * Copies the registers and the stack of the calling thread in 1 to 3 us. seedwalk_sampler_sample with
 * SEEDWALK_COPIES walks the copies later. A stack is complete from the caller of this function to the
 * thread's base. It may be called in any callback, also in cooperative mode, and in
 * EventPipeEventDelivered: it takes no lock, does not wait or allocate, and does not enter Go. tag
 * identifies the stack. SEEDWALK_FULL: 64 copies are waiting, and this one is dropped. */
extern int seedwalk_sampler_copy(uint64_t tag);

/* Names for display: a zero-terminated text of at most room bytes. Returns its length. */
extern int seedwalk_error_text(int32_t error, char *out, int32_t room);
extern int seedwalk_gap_name(int32_t gap, char *out, int32_t room);
extern int seedwalk_stop_name(int32_t stop, char *out, int32_t room);
extern int seedwalk_verdict_name(int32_t verdict, char *out, int32_t room);

/* For DoStackSnapshot's callback: records one frame, without a call into the library. context is the
 * callback's argument, a CONTEXT of the machine that this is compiled for. */
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
