/* Copies from a thread what a walk needs: registers and stack.
 *
 * The sampler sends a queued real-time signal that carries slot and serial. The handler copies and
 * returns. A late thread finds the request withdrawn and returns at once. The handler calls only memcpy
 * and system calls. */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static struct sw_slot slots[SW_SLOTS];
static size_t stack_room;
static uint32_t serials; /* the last request's serial */
enum { STATES = 2, SERIALS = (1u << (32 - STATES)) - 1 }; /* a slot's word: a state, and above it the request's serial */
enum { ECHO = 0xffff }; /* no slot: sw_signal_taken checks whether our handler is called at all */
static uint32_t echoed;
enum { SIGNAL_OFFSET = 5 }; /* SIGRTMIN+5; the CLR uses SIGRTMIN */

int sw_signal_number(void) { return SIGRTMIN + SIGNAL_OFFSET; }
struct sw_slot *sw_slot_at(int i) { return &slots[i]; }

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *limit)
{
	return syscall(SYS_futex, word, op, value, limit, NULL, 0);
}

static uint32_t word(uint32_t serial, enum sw_state state) { return serial << STATES | state; }
static enum sw_state state_of(uint32_t word) { return word & ((1 << STATES) - 1); }

/* change moves a request from one state to the next. It fails if the request was withdrawn, even if the slot
 * holds another request in the same state. */
static int change(struct sw_slot *s, uint32_t serial, enum sw_state from, enum sw_state to)
{
	uint32_t before = word(serial, from);
	return __atomic_compare_exchange_n(&s->word, &before, word(serial, to), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* UNWIND_INFO's order of registers in the kernel's numbering. */
static const unsigned char order[17] = {
	REG_RIP, REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
	REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

/* The end of the stack that contains sp, which may be the alternate one. */
static uint64_t stack_end(struct sw_slot *s, uint64_t sp)
{
	stack_t alt;
	if (sigaltstack(NULL, &alt) == 0 && !(alt.ss_flags & SS_DISABLE)) {
		uint64_t low = (uint64_t)alt.ss_sp;
		if (sp - low < alt.ss_size) {
			s->foreign = 1;
			return low + alt.ss_size;
		}
	}
	return s->stack_high;
}

/* Reads the process's own memory: the number of bytes, or -1 and errno. */
static long read_checked(void *to, uint64_t from, uint64_t len)
{
	struct iovec local = {to, len}, remote = {(void *)from, len};
	return syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0);
}

/* Copies what is readable. A thread may be on a stack other than its own (a fiber's, a coroutine's).
 * Unreadable pages may lie between it and the known end, and a fault here would end the process. */
static uint64_t copy_checked(void *to, uint64_t from, uint64_t len)
{
	long n = read_checked(to, from, len);
	if (n < 0 && (errno == EPERM || errno == ENOSYS)) { /* a container forbids it */
		memcpy(to, (const void *)from, len);
		return len;
	}
	return n < 0 ? 0 : (uint64_t)n;
}

static void copy_stack(struct sw_slot *s)
{
	uint64_t sp = s->regs[5], from = sp - 128, end = stack_end(s, sp); /* 128: the red zone */
	s->stack_addr = from;
	s->stack_len = 0;
	if (end <= sp || end - sp > (uint64_t)1 << 40) {
		s->foreign = 1;
		return;
	}
	uint64_t len = end - from;
	if (len > stack_room) {
		len = stack_room;
		s->truncated = 1;
	}
	s->stack_len = copy_checked(s->stack, from, len);
	if (s->stack_len < len)
		s->foreign = 1;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	int saved_errno = errno;
	uint64_t value = (uint64_t)info->si_value.sival_ptr;
	uint32_t index = (uint32_t)value, serial = (uint32_t)(value >> 32);
	if (info->si_code == SI_QUEUE && info->si_pid == getpid() && index < SW_SLOTS) {
		struct sw_slot *s = &slots[index];
		if (change(s, serial, SW_ASKED, SW_CAPTURING)) {
			const ucontext_t *u = context;
			for (int i = 0; i < 17; i++)
				s->regs[i] = (uint64_t)u->uc_mcontext.gregs[order[i]];
			copy_stack(s);
			__atomic_store_n(&s->word, word(serial, SW_CAPTURED), __ATOMIC_RELEASE);
			futex(&s->word, FUTEX_WAKE_PRIVATE, 1, NULL);
		}
	} else if (info->si_code == SI_QUEUE && info->si_pid == getpid() && index == ECHO) {
		__atomic_store_n(&echoed, serial, __ATOMIC_RELEASE);
	}
	errno = saved_errno;
}

void *sw_reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Makes the slots and installs the handler. 0, or an errno. */
int sw_capture_init(size_t stack_bytes)
{
	stack_room = stack_bytes;
	for (int i = 0; i < SW_SLOTS; i++) {
		slots[i].stack = sw_reserve(stack_bytes);
		slots[i].frames = sw_reserve(SW_FRAME_ROOM * sizeof(struct sw_frame));
		if (!slots[i].stack || !slots[i].frames)
			return ENOMEM;
	}
	struct sigaction old, act;
	if (sigaction(sw_signal_number(), NULL, &old) != 0)
		return errno;
	if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN)
		return EBUSY;
	/* No SA_ONSTACK: the CLR may run on the thread's own stack while the top of the alternate
	 * stack still holds a frame to which it will return. */
	memset(&act, 0, sizeof act);
	act.sa_sigaction = on_signal;
	act.sa_flags = SA_SIGINFO | SA_RESTART;
	sigfillset(&act.sa_mask);
	return sigaction(sw_signal_number(), &act, NULL) ? errno : 0;
}

uint64_t sw_copy_own(void *to, uint64_t from, uint64_t len, int sure)
{
	if (!sure)
		return copy_checked(to, from, len);
	memcpy(to, (const void *)from, len);
	return len;
}

/* What became of the signal that was sent to a thread. */
enum signal_state {
	GONE,    /* the thread has taken it, or this is unknown */
	BLOCKED, /* the thread runs on without it */
	DUE      /* its handler will run before any other code of the thread */
};

static enum signal_state sent_to(uint64_t tid)
{
	char path[64], text[4096];
	snprintf(path, sizeof path, "/proc/self/task/%llu/status", (unsigned long long)tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	const char *pending = strstr(text, "SigPnd:"), *blocked = strstr(text, "SigBlk:");
	uint64_t bit = 1ull << (sw_signal_number() - 1);
	if (!pending || !blocked || !(strtoull(pending + 7, NULL, 16) & bit))
		return GONE;
	return strtoull(blocked + 7, NULL, 16) & bit ? BLOCKED : DUE;
}

/* Threads that did not answer. They are asked again only after they have taken the pending signal, so a
 * thread that blocks it delays nothing and collects no signals. */
enum { SILENT = 64 };
static uint64_t silent[SILENT];

static int still_silent(uint64_t tid)
{
	uint64_t *slot = &silent[tid % SILENT];
	if (*slot == tid && sent_to(tid) == GONE)
		*slot = 0;
	return *slot == tid;
}

/* Sends our signal to a thread with a slot's number and serial. 0, or -1 and errno. */
static long send(uint64_t tid, uint32_t slot, uint32_t serial)
{
	siginfo_t info;
	memset(&info, 0, sizeof info);
	info.si_signo = sw_signal_number();
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = (void *)((uint64_t)serial << 32 | slot);
	return syscall(SYS_rt_tgsigqueueinfo, getpid(), (int)tid, info.si_signo, &info);
}

/* Whether the signal is no longer ours: no thread would answer, and without a handler the signal would end
 * the process. Another handler that was set since may pass our signal on; sending this thread one shows
 * whether it does. Called by the sampler while nothing is suspended. */
int sw_signal_taken(void)
{
	static uint64_t passes; /* a handler that passes it on */
	struct sigaction now;
	sigset_t only, before;
	if (sigaction(sw_signal_number(), NULL, &now))
		return 0;
	if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)
		return 1;
	if (now.sa_sigaction == on_signal || (uint64_t)now.sa_sigaction == passes)
		return 0;
	uint32_t serial = ++serials & SERIALS;
	if (send((uint64_t)syscall(SYS_gettid), ECHO, serial))
		return 0; /* too many pending signals: the next sample will show */
	sigemptyset(&only);
	sigaddset(&only, sw_signal_number());
	pthread_sigmask(SIG_UNBLOCK, &only, &before); /* now it has been delivered */
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (__atomic_load_n(&echoed, __ATOMIC_ACQUIRE) != serial)
		return 1;
	passes = (uint64_t)now.sa_sigaction;
	return 0;
}

/* Requests a thread's copy; sw_await returns whether it came. */
void sw_ask(int slot, uint64_t thread_id, uint64_t tid, uint64_t stack_high)
{
	struct sw_slot *s = &slots[slot];
	s->thread_id = thread_id;
	/* A thread that lost its processor in the middle of an old copy still owns the slot: skip this round. */
	s->busy = state_of(__atomic_load_n(&s->word, __ATOMIC_ACQUIRE)) == SW_CAPTURING || still_silent(tid);
	if (s->busy)
		return;
	s->tid = tid;
	s->stack_high = stack_high;
	s->truncated = s->foreign = s->full = 0;
	s->stack_len = s->frame_count = 0;
	uint32_t serial = ++serials & SERIALS;
	__atomic_store_n(&s->word, word(serial, SW_ASKED), __ATOMIC_RELEASE);
	if (send(tid, (uint32_t)slot, serial) != 0) {
		s->busy = errno == EAGAIN; /* too many pending signals: the thread still exists */
		__atomic_store_n(&s->word, word(serial, SW_IDLE), __ATOMIC_RELEASE);
	}
}

#ifndef SW_WAITS
#define SW_WAITS 64 /* how often a wait may end early */
#endif

/* Waits until the copy is complete or the time is over. Returns the slot's word. Without time it makes no
 * system call, in which the sampler could lose its processor. */
static uint32_t settle(struct sw_slot *s, int timeout_us)
{
	struct timespec limit = {timeout_us / 1000000, (timeout_us % 1000000) * 1000L};
	for (int tries = 0;; tries++) {
		uint32_t now = __atomic_load_n(&s->word, __ATOMIC_ACQUIRE);
		if ((state_of(now) != SW_ASKED && state_of(now) != SW_CAPTURING) || tries == SW_WAITS || !timeout_us ||
		    (futex(&s->word, FUTEX_WAIT_PRIVATE, now, &limit) != 0 && errno == ETIMEDOUT))
			return now;
	}
}

/* Withdraws the request of a thread that has not answered. Returns SW_ASKED, or the state of its copy. */
static int withdraw(struct sw_slot *s, uint32_t asked)
{
	silent[s->tid % SILENT] = s->tid;
	return change(s, asked >> STATES, SW_ASKED, SW_IDLE) ? SW_ASKED : state_of(__atomic_load_n(&s->word, __ATOMIC_ACQUIRE));
}

/* Waits for the copy while the runtime is suspended. Returns SW_CAPTURED, SW_IDLE if the thread is gone,
 * SW_ASKED if it did not answer in time, in which case the request is withdrawn, or SW_CAPTURING if the copy
 * will be that of this moment though it is not complete yet: sw_await_late waits for it. */
int sw_await(int slot, int timeout_us)
{
	struct sw_slot *s = &slots[slot];
	if (s->busy)
		return SW_ASKED;
	uint32_t now = settle(s, timeout_us);
	if (state_of(now) != SW_ASKED)
		return state_of(now);
	return sent_to(s->tid) == DUE ? SW_CAPTURING : withdraw(s, now);
}

/* Waits for the copy of a thread that got no processor while the runtime was suspended. Such a thread is
 * still where it was then. Returns SW_CAPTURED, or another state if its copy did not come in time. */
int sw_await_late(int slot, int timeout_us)
{
	struct sw_slot *s = &slots[slot];
	uint32_t now = settle(s, timeout_us);
	return state_of(now) == SW_CAPTURED ? SW_CAPTURED : withdraw(s, now);
}

/* ---- Where a thread waits ----
 *
 * The CLR's ResumeRuntime, which the sampler calls, wakes the threads that wait for the end of the
 * suspension before it returns. So the content of their condition variable has changed by then.
 * glibc's condition variable has 48 bytes, and the futex is the word 40 or 44 bytes after its start. */
enum { BEFORE = 40, FUTEX = 4 };
enum { RAX = 1, RSI = 7, RDI = 8 }; /* indexes in sw_slot.regs */
static struct {
	int known;
	uint8_t was[BEFORE + FUTEX];
} waited[SW_SLOTS];

/* The thread is about to wait at a condition variable again: the kernel has set its registers back to the
 * call that our signal interrupted. Mutexes wait with another operation. */
static int waits(const struct sw_slot *s)
{
	return s->regs[RAX] == SYS_futex && (s->regs[RSI] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && s->regs[RDI] > BEFORE;
}

static int read_wait(const struct sw_slot *s, uint8_t *to)
{
	return read_checked(to, s->regs[RDI] - BEFORE, BEFORE + FUTEX) == BEFORE + FUTEX;
}

/* Called before ResumeRuntime, for each slot that was captured in this window. */
void sw_wait_note(int slot)
{
	waited[slot].known = waits(&slots[slot]) && read_wait(&slots[slot], waited[slot].was);
}

/* Called after ResumeRuntime. */
int sw_wait_ended(int slot)
{
	uint8_t now[BEFORE + FUTEX];
	if (!waited[slot].known || !read_wait(&slots[slot], now))
		return SW_WAKE_UNKNOWN;
	return memcmp(now, waited[slot].was, sizeof now) ? SW_WOKEN : SW_WAKE_NOT;
}
