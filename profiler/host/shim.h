/* The C half of the profiler: the code that must not enter Go.
 *
 * Application threads run two parts of this code, which are C only. The CLR calls the callbacks on them. The
 * callbacks are in the library that contains this code, and record events with the functions below. On
 * Linux, application threads also run the signal handler (capture_linux.c). One thread, the sampler, runs
 * Go and calls the functions declared here. C and Go share the structures; both sides check their layout.
 *
 * Sources: dotnet/runtime src/coreclr/inc/corprof.idl and cor.h (slots and constants); Linux signal(7),
 * sigqueue(3); Windows winnt.h. */
#ifndef SEEDWALK_SHIM_H
#define SEEDWALK_SHIM_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t sw_hresult;

struct sw_guid {
	uint32_t a;
	uint16_t b, c;
	uint8_t d[8];
};

/* One callback of DoStackSnapshot; clr.SnapshotFrame in Go. */
struct sw_frame {
	uint64_t function, ip, sp, fp;
	uint64_t saved[10]; /* rbx r12 r13 r14 r15, on Windows rsi rdi and SW_SAVED_MASK */
};

/* A thread's place for one capture. regs are the interrupted thread's: rip, then in UNWIND_INFO's order
 * rax rcx rdx rbx rsp rbp rsi rdi r8-r15. */
struct sw_slot {
	uint32_t word; /* Linux: enum sw_state, and above it the serial of the request; a late signal carries an old serial */
	uint64_t thread_id;
	uint64_t tid;
	uint64_t stack_high;
	uint64_t regs[17];
	uint64_t stack_addr;
	uint64_t stack_len;
	uint32_t truncated;
	uint32_t foreign;
	uint32_t result; /* of DoStackSnapshot */
	uint32_t full;
	uint32_t busy;   /* an older copy is still being written */
	uint32_t seeded; /* Windows: pass seed to DoStackSnapshot */
	uint64_t frame_count;
	uint8_t *stack;                  /* with room for stack_bytes */
	struct sw_frame *frames;         /* with room for frame_room */
	uint8_t *context, *seed;         /* Windows: CONTEXTs, SW_CONTEXT_BYTES each */
	uint64_t stack_low, handle, teb; /* Windows: of the thread */
	uint32_t already;                /* Windows: its suspend count before ours */
	uint64_t loads;                  /* Windows: sw_loader_changes at the capture of its registers */
};

enum sw_state {
	SW_IDLE,      /* no request */
	SW_ASKED,     /* the signal has been sent */
	SW_CAPTURING, /* the thread copies its stack */
	SW_CAPTURED,  /* the copy is complete, the thread has resumed */
};

/* sizeof(CONTEXT) of x86-64 Windows; rsi and rdi in sw_frame.saved[7]. */
enum { SW_CONTEXT_BYTES = 1232, SW_SAVED_MASK = 1 << 6 | 1 << 7 };
enum { SW_SLOTS = 32, SW_FRAME_ROOM = 8192, SW_THREADS = 4096, SW_EVENTS = 4096 };

/* A managed thread, from the callbacks. */
struct sw_thread {
	uint64_t thread_id; /* 0: free entry */
	uint64_t tid;       /* 0: not yet bound to a kernel thread */
	uint64_t stack_low, stack_high;
	uint64_t handle, teb;                    /* Windows */
	uint64_t alternate, before, before_size; /* Linux: our alternate stack and the one that it replaces */
	uint32_t dead;
	char name[64];
};

/* A method or a class: the address of its module, its row there, and its type arguments. */
enum { SW_TYPE_ARGS = 16 };
struct sw_shape {
	uint64_t base, class_id;
	uint32_t token, rank, count;
	uint64_t args[SW_TYPE_ARGS];
};

/* COR_DEBUG_IL_TO_NATIVE_MAP: code from start to end, relative to the method's first byte. */
struct sw_il {
	uint32_t il, start, end;
};

/* A loaded Windows image; live.Loaded in Go. */
struct sw_module {
	uint64_t base;
	uint32_t size, stamp;
	char path[1024];
};
enum { SW_MODULES = 2048 };

enum sw_event_kind { SW_EVENT_JIT = 1, SW_EVENT_MODULE_LOAD, SW_EVENT_MODULE_UNLOAD, SW_EVENT_LOST };
struct sw_event {
	uint64_t kind, a;
};

/* capture_linux.c, capture_windows.c */
int sw_capture_init(size_t stack_bytes);
int sw_signal_number(void);
int sw_signal_taken(void); /* by another handler; Windows has none */
struct sw_slot *sw_slot_at(int i);
void sw_ask(int slot, uint64_t thread_id, uint64_t tid, uint64_t stack_high);
int sw_await(int slot, int timeout_us);
int sw_await_late(int slot, int timeout_us);
int sw_suspend(int slot, uint64_t thread_id);
int sw_context(int slot);
void sw_resume(int slot);
uint64_t sw_now_ns(void);
void *sw_reserve(size_t bytes);
/* Copies the calling thread's stack; sure: all of it is readable. Returns the number of bytes. */
uint64_t sw_copy_own(void *to, uint64_t from, uint64_t len, int sure);
/* Linux: whether the end of a suspension woke the thread of a slot; clr.Wake in Go. */
enum sw_wake { SW_WAKE_UNKNOWN, SW_WAKE_NOT, SW_WOKEN };
void sw_wait_note(int slot);
int sw_wait_ended(int slot);

/* threads.c */
int sw_threads_copy(struct sw_thread *out, int room);
int sw_thread_alive(uint64_t thread_id, uint64_t tid);
void sw_window_enter(void);
void sw_window_leave(void);
int sw_claim(uint64_t thread_id, uint64_t tid);
void sw_release(void);
struct sw_thread *sw_thread_of(uint64_t thread_id);
struct sw_thread *sw_thread_by_tid(uint64_t tid);

/* threads_linux.c, threads_windows.c */
uint64_t sw_thread_bind(struct sw_thread *t, uint32_t os_thread); /* returns the kernel thread id */
void sw_thread_unbind(struct sw_thread *t);
uint64_t sw_thread_cpu_ns(uint64_t tid);
uint64_t sw_thread_self(void); /* the calling thread's kernel id */
/* The calling thread's ThreadID, 0 if the CLR has not reported it, and the bounds of its stack, 0 if
 * unknown. */
void sw_own_stack(uint64_t tid, uint64_t *thread_id, uint64_t *low, uint64_t *high);

/* events.c */
int sw_event_next(struct sw_event *out);
void sw_event_push(uint64_t kind, uint64_t a);
void sw_resolve_enter(void);
void sw_resolve_leave(void);
void sw_unload(void);

/* info.c: calls of ICorProfilerInfo by the sampler; the first by the CLR's Initialize. */
int sw_get_info(void *unknown);
sw_hresult sw_suspend_runtime(void);
sw_hresult sw_resume_runtime(void);
sw_hresult sw_snapshot(int slot);
sw_hresult sw_prime(uint64_t thread_id, int *callbacks);
sw_hresult sw_function_from_ip(uint64_t ip, uint64_t *function);
uint64_t sw_function_at(uint64_t ip);
int sw_jitted(uint64_t *functions, uint64_t *starts, int room);
sw_hresult sw_function_name(uint64_t function, char *name, int room, char *module, int module_room);
sw_hresult sw_function_shape(uint64_t function, struct sw_shape *out);
sw_hresult sw_il_map(uint64_t function, uint64_t ip, uint64_t *begin, struct sw_il *map, uint32_t room, uint32_t *count);
sw_hresult sw_class_shape(uint64_t class_id, struct sw_shape *out);
sw_hresult sw_runtime_version(int out[4]);

/* loader_linux.c, loader_windows.c */
uint64_t sw_loader_changes(void);
int sw_loader_init(void);
int sw_modules(struct sw_module *out, int room);

/* common.c */
void sw_stop(void);
int sw_stopping(void);

/* Internal to the C half. */
extern void *sw_info;       /* ICorProfilerInfo* */
extern int sw_info_version; /* the interface that sw_info is */
void sw_thread_created(uint64_t thread_id);
void sw_thread_assigned(uint64_t thread_id, uint32_t os_thread);
void sw_thread_destroyed(uint64_t thread_id);
void sw_thread_renamed(uint64_t thread_id, uint32_t units, const uint16_t *name);
int sw_utf8(const uint16_t *in, uint32_t units, char *out, int room); /* text.c */

/* The slot-th method of the COM object self, as a function pointer of type T. */
#define SW_METHOD(self, slot, T) ((T)(*(void ***)(self))[slot])

#endif
