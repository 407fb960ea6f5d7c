/* The client library with a helper of the test's own: this program, started with "engine". It prints what is
 * wrong, and "good" at the end.
 *   - A copy has its caller's registers, and its tag.
 *   - The helper suspends a thread and dies. The thread goes on.
 *   - The next helper gets no record of the one before.
 *   - A helper announces a suspension and dies before it. A suspension by the program itself stays. */
#include "../src/client.h"

#include <stdio.h>
#include <stdlib.h>

static volatile uint64_t steps;

static DWORD WINAPI work(void *nothing)
{
	for (;; Sleep(1))
		steps++;
	return (DWORD)(uintptr_t)nothing;
}

/* moves reports whether the working thread runs. */
static int moves(void)
{
	uint64_t before = steps;
	Sleep(300);
	return steps > before;
}

/* helper suspends the thread whose number the program writes into the header's relay, and ends. If relay_sent is
 * set, it only announces that. */
static int helper(int count, char **args)
{
	uint64_t section = 0;
	for (int i = 2; i + 1 < count; i++)
		if (!strcmp(args[i], "--section"))
			section = strtoull(args[i + 1], 0, 10);
	struct sw_header *h = MapViewOfFile((HANDLE)(uintptr_t)section, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, 0);
	while (h && !__atomic_load_n(&h->relay, __ATOMIC_ACQUIRE))
		Sleep(1);
	HANDLE thread = h ? OpenThread(THREAD_SUSPEND_RESUME, FALSE, h->relay) : 0;
	if (!thread)
		return 1;
	h->suspended = h->relay;
	h->helper = GetCurrentProcessId();
	if (!h->relay_sent)
		SuspendThread(thread);
	__atomic_store_n(&h->relayed, 1, __ATOMIC_RELEASE);
	if (h->relay_sent)
		return 1;
	Sleep(1000); /* meanwhile the program sees that the thread stands */
	return 1;
}

/* called copies with known registers. It returns the stack pointer at the call. */
uint64_t called(uint64_t tag);
__asm__(".text\n.globl called\n.seh_proc called\ncalled:\n"
	"\tpush %rbx\n\t.seh_pushreg %rbx\n\tpush %rbp\n\t.seh_pushreg %rbp\n\tpush %r12\n\t.seh_pushreg %r12\n"
	"\tpush %r13\n\t.seh_pushreg %r13\n\tpush %r14\n\t.seh_pushreg %r14\n\tpush %r15\n\t.seh_pushreg %r15\n"
	"\tpush %rsi\n\t.seh_pushreg %rsi\n\tpush %rdi\n\t.seh_pushreg %rdi\n\tsub $40, %rsp\n\t.seh_stackalloc 40\n\t.seh_endprologue\n"
	"\tmov $104, %r12\n\tmov $105, %r13\n\tmov $106, %r14\n\tmov $107, %r15\n"
	"\tmov $108, %rdi\n\tmov $109, %rsi\n\tmov $110, %rbp\n\tmov $111, %rbx\n"
	"\tcall seedwalk_sampler_copy\n.globl behind\nbehind:\n\tmov %rsp, %rax\n\tadd $40, %rsp\n"
	"\tpop %rdi\n\tpop %rsi\n\tpop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbp\n\tpop %rbx\n\tret\n\t.seh_endproc\n");
extern const char behind[];

static int copied(void)
{
	enum { TAG = 42, FIRST = 4, LAST = 11, SP = 15, IP = 16 };
	int bad = 0;
	uint64_t at = sw_shared->head, sp = called(TAG);
	const struct sw_record *r = (const struct sw_record *)((const char *)sw_shared + SW_BEFORE_RING + at % SW_RING_SIZE);
	for (int i = FIRST; i <= LAST; i++)
		if (r->regs[i] != 100u + (unsigned)i)
			bad += printf("register %d is %llu\n", i, (unsigned long long)r->regs[i]);
	if (r->regs[SP] != sp || r->regs[IP] != P(behind) || r->stack != sp)
		bad += printf("sp %llx, want %llx\n", (unsigned long long)r->regs[SP], (unsigned long long)sp);
	if (r->since != TAG || r->event != SW_ASKED_COPY || r->tid != GetCurrentThreadId())
		bad += printf("tag %llu, event %x, thread %u\n", (unsigned long long)r->since, r->event, r->tid);
	return bad;
}

/* command lets the helper suspend a thread, or only announce that, and waits until it has. */
static void command(DWORD tid, int announce)
{
	sw_shared->relay_sent = (uint32_t)announce;
	__atomic_store_n(&sw_shared->relay, tid, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&sw_shared->relayed, __ATOMIC_ACQUIRE))
		Sleep(1);
}

/* collect ends a suspension after a moment, as a collection does. It returns the thread's suspensions. */
static DWORD WINAPI collect(void *thread)
{
	Sleep(5);
	return ResumeThread(thread);
}

/* announce lets the helper announce a suspension and end. */
static void announce(DWORD tid)
{
	command(tid, 1);
	HANDLE process = OpenProcess(SYNCHRONIZE, FALSE, sw_shared->helper);
	if (process)
		WaitForSingleObject(process, INFINITE);
}

/* announced reports what is wrong if a helper ends that has suspended nothing, while the program has
 * suspended the thread. */
static int announced(HANDLE thread, DWORD tid, const seedwalk_sampler_request *q)
{
	DWORD suspensions = 0;
	announce(tid);
	SuspendThread(thread);
	HANDLE collector = CreateThread(0, 0, collect, thread, 0, 0);
	while (!seedwalk_sampler_sample(q, 0))
		Sleep(1);
	WaitForSingleObject(collector, INFINITE);
	GetExitCodeThread(collector, &suspensions);
	return suspensions && moves() ? 0 : printf("a suspension of the program's own was undone\n");
}

static void on_stack(void *client, const seedwalk_stack *s) { (void)client, (void)s; }

int main(int count, char **args)
{
	static char own[MAX_PATH];
	DWORD tid;
	if (count > 1 && !strcmp(args[1], "engine"))
		return helper(count, args);
	GetModuleFileNameA(0, own, sizeof own);
	HANDLE worker = CreateThread(0, 0, work, 0, 0, &tid);
	seedwalk_client_options o = {.size = sizeof o, .engine = own};
	seedwalk_sampler_request q = {.size = sizeof q, .on_stack = on_stack};
	int e = seedwalk_client_configure(&o), bad = 0;
	if (e || (e = seedwalk_sampler_open(0)))
		return printf("open: %d\n", e), 1;
	bad = copied();
	command(tid, 0);
	if (moves())
		bad += printf("the helper suspends nothing\n");
	while (!(e = seedwalk_sampler_sample(&q, 0)))
		Sleep(1);
	if (e != SEEDWALK_ENGINE_GONE || !moves())
		bad += printf("%d; the thread stands\n", e);
	uint64_t before = sw_shared->head;
	if ((e = seedwalk_sampler_open(0)) || sw_shared->head != before || sw_shared->tail != before || !before)
		bad += printf("open again: %d; positions go on from %llu\n", e, (unsigned long long)sw_shared->head);
	bad += copied();
	bad += announced(worker, tid, &q);
	if ((e = seedwalk_sampler_open(0)))
		bad += printf("open after that: %d\n", e);
	announce(GetCurrentThreadId());
	while (!seedwalk_sampler_sample(&q, 0)) /* must not suspend itself */
		Sleep(1);
	seedwalk_sampler_close();
	return bad ? 1 : (puts("good"), 0);
}
