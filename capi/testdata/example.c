/* The worked example of docs/embedding.md: a profiler without a CLR.
 *
 * A second thread runs native code, which calls code that was made at run time
 * (it plays a JIT's), which calls native code again. This thread samples it as
 * a profiler does: it stops it, takes its registers and its stack, asks for a
 * seed, lets it go, and merges what DoStackSnapshot would report with what is
 * seen in the copy. The second thread knows its own stack, so everything is
 * checked.
 *
 * C and C++; Linux and Windows, x86-64 and ARM64. What a system does in its
 * own way stands in the two blocks PLATFORM; the rest is the same for all. */
#define _GNU_SOURCE 1
#include "seedwalk.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef _WIN32
#undef _WIN32_WINNT
#define _WIN32_WINNT 0x0602 /* GetCurrentThreadStackLimits */
#include <windows.h>

#include <tlhelp32.h>
#else
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#endif

#define APART __attribute__((noinline))
/* After a call: keeps it from becoming a jump, which would leave no frame. */
#define NO_TAIL_CALL() __asm__ volatile("")

static int failed;

static void check(const char *what, int ok)
{
	if (!ok) {
		printf("NOT AS IT SHOULD BE: %s\n", what);
		failed = 1;
	}
}

static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

/* ---- the second thread and what it knows of itself ---- */

enum { METHOD = 77 }; /* the FunctionID of the made code */

static uint8_t *made; /* the made code */
static struct {
	uint64_t low, high;   /* its stack */
	uint64_t in_callback; /* where leaf returns to */
	uint64_t in_made;     /* where callback returns to */
	uint64_t made_sp;     /* the made code's stack pointer at its call */
	int ready, stop;
} truth;

/* void f(void (*callee)(void), uint64_t *sp): writes its stack pointer to *sp and
 * calls callee. Its frame pointer points at the caller's, the return address is
 * above. RETURN is where callee returns to. */
#if defined(__aarch64__)
enum { RETURN = 20, FRAME = 0 };
static const uint8_t machine_code[] = {
	0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, /* stp x29, x30, [sp, #-16]!; mov x29, sp */
	0xe2, 0x03, 0x00, 0x91, 0x22, 0x00, 0x00, 0xf9, /* mov x2, sp; str x2, [x1] */
	0x00, 0x00, 0x3f, 0xd6,                         /* blr x0 */
	0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6, /* ldp x29, x30, [sp], #16; ret */
};
#elif defined(_WIN32)
enum { RETURN = 13, FRAME = 32 };
static const uint8_t machine_code[] = {
	0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, /* push rbp; mov rbp, rsp; sub rsp, 32 */
	0x48, 0x89, 0x22, 0xff, 0xd1,                   /* mov [rdx], rsp; call rcx */
	0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3,             /* add rsp, 32; pop rbp; ret */
};
#else
enum { RETURN = 9, FRAME = 0 };
static const uint8_t machine_code[] = {
	0x55, 0x48, 0x89, 0xe5,       /* push rbp; mov rbp, rsp */
	0x48, 0x89, 0x26, 0xff, 0xd7, /* mov [rsi], rsp; call rdi */
	0x5d, 0xc3,                   /* pop rbp; ret */
};
#endif

APART static void leaf(void)
{
	truth.in_callback = address(__builtin_return_address(0));
	__atomic_store_n(&truth.ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&truth.stop, __ATOMIC_ACQUIRE))
		;
}

APART static void callback(void)
{
	truth.in_made = address(__builtin_return_address(0));
	leaf();
	NO_TAIL_CALL();
}

typedef void (*made_function)(void (*callee)(void), uint64_t *sp);

APART static void call_made_code(void)
{
	((made_function)(uintptr_t)made)(callback, &truth.made_sp);
	NO_TAIL_CALL();
}

/* ---- one sample ---- */

enum { STACK_ROOM = 1 << 20, CONTEXT_ROOM = 8192, FRAMES = 256 };

static struct {
	uint8_t context[CONTEXT_ROOM] __attribute__((aligned(16))); /* as the system gives it */
	uint64_t context_size;
	uint8_t seed[2048] __attribute__((aligned(16))); /* CONTEXT in the layout of Windows */
	uint8_t bytes[STACK_ROOM];
	seedwalk_sample taken;
	seedwalk_frame frames[FRAMES];
	seedwalk_result result;
} sample;

static seedwalk_handle handle;

/* Copies [from, the stack's end); the caller knows that it is mapped. */
static void copy_stack(uint64_t from)
{
	uint64_t length = truth.high - from;
	if (length > STACK_ROOM)
		length = STACK_ROOM;
	memcpy(sample.bytes, (const void *)(uintptr_t)from, (size_t)length);
	sample.taken.address = from;
	sample.taken.stack = sample.bytes;
	sample.taken.length = length;
}

static uint64_t function_from_ip(void *client, uint64_t ip)
{
	(void)client;
	return ip - address(made) < sizeof machine_code ? METHOD : 0;
}

/* What is the same for all samples. */
static seedwalk_sample *taken(int32_t layout)
{
	seedwalk_sample *t = &sample.taken;
	t->size = sizeof *t;
	t->layout = layout;
	t->context = sample.context;
	t->context_size = sample.context_size;
	t->low = truth.low;
	t->high = truth.high;
	t->from_ip = function_from_ip;
	return t;
}

static seedwalk_walk_request walk_request(int32_t layout)
{
	seedwalk_walk_request r;
	memset(&r, 0, sizeof r);
	r.size = sizeof r;
	r.sample = taken(layout);
	r.frames = sample.frames;
	r.room = FRAMES;
	r.seed = sample.seed;
	r.seed_size = sizeof sample.seed;
	sample.result.size = sizeof sample.result;
	return r;
}

static void walk(int32_t layout)
{
	seedwalk_walk_request r = walk_request(layout);
	check("seedwalk_walk", seedwalk_walk(handle, &r, &sample.result) == SEEDWALK_OK);
}

#ifdef _WIN32 /* ==== PLATFORM: Windows ==== */

enum { LAYOUT = SEEDWALK_CONTEXT_WIN32 };

static HANDLE second;

static DWORD WINAPI thread_main(void *unused)
{
	ULONG_PTR low, high;
	(void)unused;
	GetCurrentThreadStackLimits(&low, &high);
	truth.low = low;
	truth.high = high;
	call_made_code();
	return 0;
}

static int start_thread(void)
{
	second = CreateThread(NULL, 0, thread_main, NULL, 0, NULL);
	return second != NULL;
}

static void end_thread(void) { WaitForSingleObject(second, INFINITE); }
static void wait_a_moment(void) { Sleep(1); }

static uint8_t *make_code(void)
{
	uint8_t *p = (uint8_t *)VirtualAlloc(NULL, 4096, MEM_RESERVE | MEM_COMMIT, PAGE_EXECUTE_READWRITE);
	if (p) {
		memcpy(p, machine_code, sizeof machine_code);
		FlushInstructionCache(GetCurrentProcess(), p, sizeof machine_code);
	}
	return p;
}

/* What a module-load notification would tell, of all that is loaded now. From
 * memory, since the loader has it there already; of one's own files
 * seedwalk_add_pe does the same. */
static int add_modules(void)
{
	int32_t count = 0;
	HANDLE list = CreateToolhelp32Snapshot(TH32CS_SNAPMODULE, GetCurrentProcessId());
	MODULEENTRY32 m;
	m.dwSize = sizeof m;
	for (BOOL more = Module32First(list, &m); more; more = Module32Next(list, &m))
		if (seedwalk_add_pe_mapped(handle, ++count, m.szExePath, address(m.modBaseAddr), m.modBaseAddr, m.modBaseSize) != SEEDWALK_OK)
			printf("%s cannot be read\n", m.szModule);
	CloseHandle(list);
	return count;
}

/* The seed is wanted while the thread stands still: DoStackSnapshot will need
 * it then. Between SuspendThread and ResumeThread stand no heap, no loader, no
 * output: the thread may own their locks. */
static void take_sample(void)
{
	CONTEXT *context = (CONTEXT *)sample.context;
	context->ContextFlags = CONTEXT_FULL | CONTEXT_FLOATING_POINT;
	sample.context_size = sizeof *context;
	if (SuspendThread(second) == (DWORD)-1)
		return;
	if (GetThreadContext(second, context)) { /* waits until it stands still */
		memcpy(sample.seed, context, sizeof *context);
#if defined(__aarch64__)
		copy_stack(context->Sp);
#else
		copy_stack(context->Rsp);
#endif
		walk(LAYOUT);
		/* DoStackSnapshot(thread, callback, COR_PRF_SNAPSHOT_REGISTER_CONTEXT,
		 * client, sample.seed, sizeof *context) would stand here. */
	}
	ResumeThread(second);
}

#else /* ==== PLATFORM: Linux ==== */

enum { LAYOUT = SEEDWALK_CONTEXT_UCONTEXT };

static pthread_t second;
static int captured;

static void *thread_main(void *unused)
{
	pthread_attr_t attr;
	void *low;
	size_t size;
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &low, &size);
	pthread_attr_destroy(&attr);
	truth.low = address(low);
	truth.high = truth.low + size;
	call_made_code();
	return unused;
}

static int start_thread(void) { return pthread_create(&second, NULL, thread_main, NULL) == 0; }
static void end_thread(void) { pthread_join(second, NULL); }

static void wait_a_moment(void)
{
	struct timespec t = {0, 1000000};
	nanosleep(&t, NULL);
}

static uint8_t *make_code(void)
{
	uint8_t *p = (uint8_t *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	memcpy(p, machine_code, sizeof machine_code);
	__builtin___clear_cache((char *)p, (char *)p + sizeof machine_code);
	return mprotect(p, 4096, PROT_READ | PROT_EXEC) == 0 ? p : NULL;
}

static int add_one(struct dl_phdr_info *info, size_t size, void *count)
{
	uint64_t start = UINT64_MAX, end = 0;
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		if (h->p_type != PT_LOAD)
			continue;
		if (info->dlpi_addr + h->p_vaddr < start)
			start = info->dlpi_addr + h->p_vaddr;
		if (info->dlpi_addr + h->p_vaddr + h->p_memsz > end)
			end = info->dlpi_addr + h->p_vaddr + h->p_memsz;
	}
	/* The program itself has no name here; the vdso has no file, and only its
	 * range is known then. */
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
	if (start < end)
		seedwalk_add_module(handle, ++*(int32_t *)count, path, start, end, info->dlpi_addr);
	return 0;
}

static int add_modules(void)
{
	int32_t count = 0;
	dl_iterate_phdr(add_one, &count);
	return count;
}

/* Runs on the second thread: copies, and nothing else. */
static void on_signal(int number, siginfo_t *info, void *context)
{
	const ucontext_t *u = (const ucontext_t *)context;
	(void)number, (void)info;
	sample.context_size = sizeof *u;
	memcpy(sample.context, u, sizeof *u);
#if defined(__aarch64__)
	copy_stack(u->uc_mcontext.sp);
#else
	copy_stack((uint64_t)u->uc_mcontext.gregs[REG_RSP] - 128); /* with the red zone */
#endif
	__atomic_store_n(&captured, 1, __ATOMIC_RELEASE);
}

static void take_sample(void)
{
	struct sigaction act;
	memset(&act, 0, sizeof act);
	act.sa_sigaction = on_signal;
	act.sa_flags = SA_SIGINFO | SA_RESTART;
	if (sigaction(SIGRTMIN + 5, &act, NULL) != 0 || pthread_kill(second, SIGRTMIN + 5) != 0)
		return;
	while (!__atomic_load_n(&captured, __ATOMIC_ACQUIRE))
		wait_a_moment();
	walk(LAYOUT);
}

#endif /* ==== PLATFORM ==== */

/* ---- what the CLR would say ---- */

static uint64_t word(uint64_t at)
{
	uint64_t v = 0;
	if (at >= sample.taken.address && at - sample.taken.address <= sample.taken.length - sizeof v)
		memcpy(&v, sample.bytes + (at - sample.taken.address), sizeof v);
	return v;
}

/* Plays DoStackSnapshot: the method, then one block of unmanaged frames. */
static int32_t snapshot(seedwalk_snapshot_frame *out)
{
	seedwalk_record(&out[0], METHOD, sample.seed);
	out[1] = out[0]; /* the made code changes no other nonvolatile register */
	out[1].function = 0;
	out[1].ip = word(out[0].fp + 8);
	out[1].sp = out[0].fp + 16;
	out[1].fp = word(out[0].fp);
	return 2;
}

/* ---- checks ---- */

static const char *name_of(int (*name)(int32_t, char *, int32_t), int32_t value)
{
	static char text[64];
	name(value, text, sizeof text);
	return text;
}

static void check_seed(void)
{
	seedwalk_snapshot_frame seed;
	const seedwalk_result *r = &sample.result;
	seedwalk_record(&seed, METHOD, sample.seed);
	printf("walk: %d frames, seed %s\n", r->frames, name_of(seedwalk_verdict_name, r->verdict));
	check("two frames up to the made code", r->frames == 2);
	check("the first is interrupted", sample.frames[0].exact && sample.frames[0].kind == SEEDWALK_NATIVE);
	check("leaf returns to callback", sample.frames[1].ip == truth.in_callback && !sample.frames[1].exact);
	check("both are in the program", sample.frames[0].module > 0 && sample.frames[0].module == sample.frames[1].module);
	check("no code is unknown", r->rescan == 0);
	check("where the walk ended", r->ip == seed.ip && r->sp == seed.sp && r->fp == seed.fp);
	check("the seed is usable", r->verdict == SEEDWALK_SEED_FOUND);
	check("callback returns to the made code", seed.ip == truth.in_made && truth.in_made == address(made) + RETURN);
	check("the seed's stack pointer", seed.sp == truth.made_sp);
	check("the seed's frame pointer", seed.fp == truth.made_sp + FRAME);
}

static void check_merged(void)
{
	seedwalk_snapshot_frame reported[2];
	int32_t count = snapshot(reported), doubtful = 0, gaps = 0;
	const seedwalk_frame *f = sample.frames;
	seedwalk_merge_request r;
	memset(&r, 0, sizeof r);
	r.size = sizeof r;
	r.sample = taken(LAYOUT);
	r.frames = sample.frames;
	r.room = FRAMES;
	r.reported = reported;
	r.count = count;
	sample.result.size = sizeof sample.result;
	check("seedwalk_merge", seedwalk_merge(handle, &r, &sample.result) == SEEDWALK_OK);
	for (int32_t i = 0; i < sample.result.frames; i++) {
		doubtful += f[i].trust >= SEEDWALK_TRUST_DOUBTFUL;
		gaps += f[i].kind == SEEDWALK_GAP;
	}
	printf("merge: gap %s, %d frames doubtful\n", name_of(seedwalk_gap_name, sample.result.gap), doubtful);
	check("no gap", gaps == 0 && sample.result.gap == 0);
	check("leaf, callback, made code, call_made_code, and how the thread began", sample.result.frames >= 5);
	check("callback", f[1].kind == SEEDWALK_NATIVE && f[1].ip == truth.in_callback);
	check("the made code", f[2].kind == SEEDWALK_MANAGED && f[2].function == METHOD && f[2].ip == truth.in_made && f[2].sp == truth.made_sp);
	check("call_made_code", f[3].kind == SEEDWALK_NATIVE && f[3].ip == word(truth.made_sp + FRAME + 8) && f[3].module == f[0].module);
}

static int walk_with(const seedwalk_walk_request *r) { return seedwalk_walk(handle, r, &sample.result); }

/* A thread that stands in the loader of Windows is told as one. */
static void check_loader(void)
{
#if defined(_WIN32) && defined(__x86_64__)
	CONTEXT *context = (CONTEXT *)sample.context;
	const DWORD64 rip = context->Rip;
	walk(LAYOUT);
	check("no thread in the loader", sample.result.loading == 0);
	context->Rip = address((const void *)(uintptr_t)GetProcAddress(GetModuleHandleA("ntdll.dll"), "LdrLoadDll"));
	walk(LAYOUT);
	check("a thread in the loader", sample.result.loading == 1);
	context->Rip = rip;
#else
	check("nothing is known of loaders", sample.result.loading == 0);
#endif
}

/* Structures that are shorter or longer than the library's, or not set. */
static void check_sizes(void)
{
	struct {
		seedwalk_walk_request known;
		uint64_t later;
	} longer;
	seedwalk_walk_request r = walk_request(LAYOUT);
	r.size = 8;
	check("a request without frames", walk_with(&r) == SEEDWALK_SHORT_STRUCT);
	r.size = 0;
	check("a size that was not set", walk_with(&r) == SEEDWALK_SHORT_STRUCT);
	r.size = 1u << 30;
	check("a size that cannot be", walk_with(&r) == SEEDWALK_UNKNOWN_FIELD);
	r.size = offsetof(seedwalk_walk_request, seed);
	r.seed = (void *)(uintptr_t)1; /* behind the end: not looked at */
	check("an older request", walk_with(&r) == SEEDWALK_OK && sample.result.verdict == SEEDWALK_SEED_FOUND);
	longer.known = walk_request(LAYOUT);
	longer.known.size = sizeof longer;
	longer.later = 0;
	check("a newer request", walk_with(&longer.known) == SEEDWALK_OK);
	longer.later = 1;
	check("a newer request that wants more", walk_with(&longer.known) == SEEDWALK_UNKNOWN_FIELD);
	r = walk_request(LAYOUT);
	sample.result.size = offsetof(seedwalk_result, exact);
	sample.result.exact = -7;
	check("an older result", walk_with(&r) == SEEDWALK_OK && sample.result.verdict == SEEDWALK_SEED_FOUND && sample.result.exact == -7);
	sample.result.size = 0;
	check("a result whose size was not set", walk_with(&r) == SEEDWALK_SHORT_STRUCT);
	sample.taken.size = offsetof(seedwalk_sample, low) - 1;
	sample.result.size = sizeof sample.result;
	check("a sample without a stack", walk_with(&r) == SEEDWALK_SHORT_STRUCT);
}

/* Many walks by one call give what single ones give, the errors of some included. */
static void check_batch(void)
{
	enum { COUNT = 4 };
	static seedwalk_frame frames[COUNT][FRAMES];
	static uint8_t seeds[COUNT][sizeof sample.seed];
	seedwalk_walk_request requests[COUNT];
	seedwalk_result answers[COUNT];
	const seedwalk_walk_request *in[COUNT];
	seedwalk_result *out[COUNT];
	int32_t errors[COUNT];
	seedwalk_batch b;
	memset(answers, 0, sizeof answers);
	for (int i = 0; i < COUNT; i++) {
		requests[i] = walk_request(LAYOUT);
		requests[i].frames = frames[i];
		requests[i].seed = seeds[i];
		answers[i].size = sizeof answers[i];
		in[i] = &requests[i];
		out[i] = &answers[i];
	}
	requests[1].room = 1;
	requests[2].room = 0;
	memset(&b, 0, sizeof b);
	b.size = sizeof b;
	b.count = COUNT;
	b.requests = in;
	b.results = out;
	b.errors = errors;
	check("seedwalk_walk_batch", seedwalk_walk_batch(handle, &b) == SEEDWALK_OK);
	for (int i = 0; i < COUNT; i++) {
		seedwalk_walk_request r = walk_request(LAYOUT);
		r.room = requests[i].room;
		memset(sample.seed, 0, sizeof sample.seed);
		memset(&sample.result, 0, sizeof sample.result);
		sample.result.size = sizeof sample.result;
		check("an error of many", walk_with(&r) == errors[i] && (errors[i] == SEEDWALK_OK) == (i != 2));
		check("a result of many", memcmp(&sample.result, &answers[i], sizeof answers[i]) == 0);
		check("frames of many", memcmp(sample.frames, frames[i], (size_t)answers[i].frames * sizeof frames[i][0]) == 0);
		check("a seed of many", memcmp(sample.seed, seeds[i], sizeof seeds[i]) == 0);
	}
	check("walks were made", answers[0].frames == 2 && answers[1].frames == 1 && answers[2].frames == 0 && answers[3].frames == 2);
	b.count = 0;
	b.requests = NULL;
	check("no walks", seedwalk_walk_batch(handle, &b) == SEEDWALK_OK);
	b.count = 1;
	check("walks without requests", seedwalk_walk_batch(handle, &b) == SEEDWALK_BAD_ARGUMENT);
	b.size = 8;
	check("a short batch", seedwalk_walk_batch(handle, &b) == SEEDWALK_SHORT_STRUCT);
	check("no batch", seedwalk_walk_batch(handle, NULL) == SEEDWALK_BAD_ARGUMENT);
}

static int nested;

static uint64_t calls_again(void *client, uint64_t ip)
{
	(void)client, (void)ip;
	nested = seedwalk_commit(handle);
	return 0;
}

static void check_errors(void)
{
	seedwalk_handle none = 1;
	seedwalk_options options;
	char text[128];
	check("a closed handle", seedwalk_commit(handle + 1) == SEEDWALK_BAD_HANDLE && seedwalk_close(0) == SEEDWALK_BAD_HANDLE);
	check("a null pointer", seedwalk_walk(handle, NULL, &sample.result) == SEEDWALK_BAD_ARGUMENT && seedwalk_merge(handle, NULL, NULL) == SEEDWALK_BAD_ARGUMENT);
	seedwalk_walk_request r = walk_request(LAYOUT);
	check("a null result", seedwalk_walk(handle, &r, NULL) == SEEDWALK_BAD_ARGUMENT);
	r.seed_size = 64;
	check("a seed that is too short", walk_with(&r) == SEEDWALK_BAD_ARGUMENT);
	r = walk_request(LAYOUT);
	sample.taken.context_size = 64;
	check("a context that is too short", walk_with(&r) == SEEDWALK_BAD_ARGUMENT);
	r = walk_request(9);
	check("an unknown layout", walk_with(&r) == SEEDWALK_BAD_ARGUMENT);
	r = walk_request(LAYOUT);
	uint64_t length = sample.taken.length;
	sample.taken.length = UINT64_MAX;
	check("a stack that cannot be", walk_with(&r) == SEEDWALK_BAD_ARGUMENT);
	sample.taken.length = length;
	check("no such file", seedwalk_add_pe(handle, 9, "no such file", 0x10000) == SEEDWALK_UNREADABLE);
	memset(&options, 0, sizeof options);
	options.size = sizeof options;
	options.architecture = 3;
	check("no such architecture", seedwalk_open(&options, &none) == SEEDWALK_BAD_ARGUMENT && none == 0);
	options.size = 4;
	check("short options", seedwalk_open(&options, &none) == SEEDWALK_SHORT_STRUCT);
	check("nowhere to put the handle", seedwalk_open(NULL, NULL) == SEEDWALK_BAD_ARGUMENT);
	check("names of what is none", strcmp(name_of(seedwalk_gap_name, 256), "gap?") == 0 && strcmp(name_of(seedwalk_stop_name, -1), "stop?") == 0 &&
	      strcmp(name_of(seedwalk_verdict_name, 1 << 16), "verdict?") == 0);
	check("the version", seedwalk_version(text, sizeof text) == SEEDWALK_ABI && text[0] && seedwalk_version(NULL, 0) == SEEDWALK_ABI);
	for (int32_t e = SEEDWALK_NO_MODULE; e <= 0; e++)
		check("each error has a text", seedwalk_error_text(e, text, sizeof text) > 5 && strcmp(text, "unknown error") != 0);
	check("the text of no error", seedwalk_error_text(INT32_MIN, text, sizeof text) > 0 && strcmp(text, "unknown error") == 0);
}

/* Code that came after the last commit: the result says so. And a stub of the CLR's
 * on top, which only function_from_ip tells from a method. */
static void check_rescan(void)
{
	seedwalk_merge_request m;
	seedwalk_handle other;
	seedwalk_walk_request r = walk_request(LAYOUT);
	check("an empty instance", seedwalk_open(NULL, &other) == SEEDWALK_OK);
	check("a walk in it", seedwalk_walk(other, &r, &sample.result) == SEEDWALK_OK && sample.result.rescan == 1);
	memset(&m, 0, sizeof m);
	m.size = sizeof m;
	m.sample = taken(LAYOUT);
	m.frames = sample.frames;
	m.room = FRAMES;
	m.hresult = 0x80004005;
	check("a merge in it", seedwalk_merge(other, &m, &sample.result) == SEEDWALK_OK && sample.result.rescan == 1 && sample.result.gap != 0);
	check("all is managed there", seedwalk_add_managed(other, 0x1000, UINT64_MAX) == SEEDWALK_OK && seedwalk_commit(other) == SEEDWALK_OK);
	check("a stub on top", seedwalk_walk(other, &r, &sample.result) == SEEDWALK_OK && sample.result.verdict == SEEDWALK_SEED_STUB_ON_TOP);
	sample.taken.from_ip = NULL;
	check("no one to ask", seedwalk_walk(other, &r, &sample.result) == SEEDWALK_OK && sample.result.verdict == SEEDWALK_SEED_NOT_NEEDED);
	handle ^= other, other ^= handle, handle ^= other; /* calls_again uses handle */
	sample.taken.from_ip = calls_again;
	check("the same handle from inside", walk_with(&r) == SEEDWALK_OK && nested == SEEDWALK_BUSY);
	handle ^= other, other ^= handle, handle ^= other;
	check("close", seedwalk_close(other) == SEEDWALK_OK);
}

static void check_modules(int32_t id)
{
	seedwalk_module m;
	memset(&m, 0, sizeof m);
	check("a module whose size was not set", seedwalk_get_module(handle, id, &m) == SEEDWALK_SHORT_STRUCT);
	m.size = sizeof m;
	check("the program's module", seedwalk_get_module(handle, id, &m) == SEEDWALK_OK && m.id == id && m.start <= address((const void *)leaf) && address((const void *)leaf) < m.end);
	check("its path", strstr(m.path, "example") != NULL);
	check("no such module", seedwalk_get_module(handle, 1 << 20, &m) == SEEDWALK_NO_MODULE);
}

/* A handle is of no use once it is closed, whatever is opened after it. */
static void check_closed(void)
{
	seedwalk_handle closed = handle, other;
	check("close", seedwalk_close(closed) == SEEDWALK_OK);
	check("closed twice", seedwalk_close(closed) == SEEDWALK_BAD_HANDLE);
	check("open again", seedwalk_open(NULL, &other) == SEEDWALK_OK);
	check("another handle", other != 0 && other != closed);
	check("used after it was closed", seedwalk_commit(closed) == SEEDWALK_BAD_HANDLE && seedwalk_close(closed) == SEEDWALK_BAD_HANDLE);
	check("the other is as it was", seedwalk_commit(other) == SEEDWALK_OK && seedwalk_close(other) == SEEDWALK_OK);
}

int main(void)
{
	made = make_code();
	check("open", made != NULL && seedwalk_open(NULL, &handle) == SEEDWALK_OK && handle != 0);
	if (failed || !start_thread())
		return 1;
	while (!__atomic_load_n(&truth.ready, __ATOMIC_ACQUIRE))
		wait_a_moment();

	/* Modules and methods as a profiler is told of them. */
	check("modules", add_modules() > 1);
	check("managed code", seedwalk_add_managed(handle, address(made), address(made) + sizeof machine_code) == SEEDWALK_OK);
	check("commit", seedwalk_commit(handle) == SEEDWALK_OK);
	take_sample();
	check_seed();
	check_merged();

	/* The same sample with the modules that the library finds by itself. */
	check("scan", seedwalk_scan(handle) == SEEDWALK_OK);
	check("commit", seedwalk_commit(handle) == SEEDWALK_OK);
	walk(LAYOUT);
	check_seed();
	check_merged();

	check_modules(sample.frames[0].module);
	check_batch();
	check_errors();
	check_sizes();
	check_loader();
	check_rescan();
	check_closed();
	__atomic_store_n(&truth.stop, 1, __ATOMIC_RELEASE);
	end_thread();
	printf("%s\n", failed ? "failed" : "all is as it should be");
	return failed;
}
