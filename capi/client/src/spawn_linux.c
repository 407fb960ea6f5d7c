/* Starts the helper process without side effects in this one: no child, no SIGCHLD, no descriptor but the
 * socket. An intermediate process ends at once, so that the system adopts the helper as an orphan. Until
 * the exec the new processes share this one's memory, so they run only system calls, with every signal
 * blocked. */
#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__)
enum { NR_shutdown = 48, NR_socketpair = 53, NR_execve = 59, NR_wait4 = 61, NR_fcntl = 72, NR_setsid = 112, NR_waitid = 247, NR_dup3 = 292 };
__asm__(".text\n.globl sw_child\n.hidden sw_child\n.type sw_child,%function\nsw_child:\n"
	/* the argument, on the new stack */
	"\tmov %rdi, %r9\n\tand $-16, %rsi\n\tsub $16, %rsi\n\tmov %rcx, (%rsi)\n"
	"\tmov %rdx, %rdi\n\tmov %r8, %rdx\n\txor %r10d, %r10d\n\txor %r8d, %r8d\n\tmov $56, %eax\n\tsyscall\n"
	"\ttest %rax, %rax\n\tjnz 1f\n"
	"\txor %ebp, %ebp\n\tmov (%rsp), %rdi\n\tcall *%r9\n\tmov %eax, %edi\n\tmov $60, %eax\n\tsyscall\n\thlt\n"
	"1:\tret\n.size sw_child, .-sw_child\n");
#else
enum { NR_shutdown = 210, NR_socketpair = 199, NR_execve = 221, NR_wait4 = 260, NR_fcntl = 25, NR_setsid = 157, NR_waitid = 95, NR_dup3 = 24 };
__asm__(".text\n.globl sw_child\n.hidden sw_child\n.type sw_child,%function\nsw_child:\n"
	"\tand x1, x1, #-16\n\tstp x0, x3, [x1, #-16]!\n"
	"\tuxtw x0, w2\n\tmov x2, x4\n\tmov x3, xzr\n\tmov x4, xzr\n\tmov x8, #220\n\tsvc #0\n"
	"\tcbz x0, 1f\n\tret\n"
	"1:\tmov x29, xzr\n\tldp x1, x0, [sp], #16\n\tblr x1\n\tmov x8, #93\n\tsvc #0\n\tbrk #0\n.size sw_child, .-sw_child\n");
#endif
enum { NR_pidfd_send_signal = 424, NR_close_range = 436 };

enum { CLONE_VM = 0x100, CLONE_FILES = 0x400, CLONE_PIDFD = 0x1000, CLONE_VFORK = 0x4000, WCLONE = (int)0x80000000 };
enum { ENGINE_SOCKET = 3, STACK_BYTES = 8192, SET_MASK = 2, SET_TIMER_SLACK = 29, SLACK_NS = 1000000 };

struct launch {
	const char *path;
	char *const *argv;
	long socket;    /* the engine's end */
	int32_t failed; /* errno */
	struct engine *out;
	char *stack_end;
};

/* close_others closes the program's descriptors in the helper: a pipe that stays open would keep its
 * reader waiting. */
static void close_others(void)
{
	enum { MANY = 4096 };
	if (sys3(NR_close_range, ENGINE_SOCKET + 1, ~0u, 0) == 0)
		return;
	for (int fd = ENGINE_SOCKET + 1; fd < MANY; fd++)
		sys3(NR_close, fd, 0, 0);
}

/* helper executes the tool. It closes its copies of the program's descriptors before it opens /dev/null,
 * because no descriptor may be free. */
static int helper(void *launch)
{
	static char *const environment[] = {0};
	struct launch *l = launch;
	uint64_t none = 0;
	long null;
	if (l->socket == ENGINE_SOCKET)
		sys3(NR_fcntl, ENGINE_SOCKET, 2 /* F_SETFD */, 0);
	else
		sys3(NR_dup3, l->socket, ENGINE_SOCKET, 0);
	close_others();
	null = open_file("/dev/null", 2 /* O_RDWR */);
	sys3(NR_setsid, 0, 0, 0); /* signals of the terminal are for the program only */
	for (int fd = 0; fd < ENGINE_SOCKET; fd++)
		if (null != fd)
			sys3(NR_dup3, null, fd, 0);
	if (null > ENGINE_SOCKET)
		sys3(NR_close, null, 0, 0);
	/* Otherwise the tool sets this slack itself, and executes its file a second time (sample/alarm). */
	sys3(NR_prctl, SET_TIMER_SLACK, SLACK_NS, 0);
	sys6(NR_rt_sigprocmask, SET_MASK, P(&none), 0, 8, 0, 0);
	l->failed = (int32_t)-sys3(NR_execve, P(l->path), P(l->argv), P(environment));
	return 127;
}

/* between starts the helper and ends, which makes the helper an orphan. */
static int between(void *launch)
{
	struct launch *l = launch;
	long pid = sw_child(helper, l->stack_end, CLONE_VM | CLONE_VFORK | CLONE_PIDFD, l, &l->out->pidfd);
	if (pid < 0)
		l->failed = (int32_t)-pid;
	else
		l->out->pid = (int32_t)pid;
	return 0;
}

int sw_spawn(const char *path, uint32_t rate, uint32_t flags, struct engine *out)
{
	char stacks[2][STACK_BYTES], pid_text[16], rate_text[16], code_text[24], *raw;
	char *argv[13] = {"seedwalk", "engine", "--pid", pid_text, "--millihertz", rate_text, "--code", code_text};
	int32_t ends[2];
	int n = 8;
	uint64_t all = ~0ull, before = 0;
	struct launch l = {path, argv, -1, 0, out, stacks[0] + STACK_BYTES};
	*out = (struct engine)NO_ENGINE;
	snprintf(pid_text, sizeof pid_text, "%d", (int)sys3(NR_getpid, 0, 0, 0));
	snprintf(rate_text, sizeof rate_text, "%u", rate);
	/* address of the probe's code */
	snprintf(code_text, sizeof code_text, "%lu", (unsigned long)(uintptr_t)sw_handler);
	if (flags & SEEDWALK_CLIENT_NO_CPU)
		argv[n++] = "--no-cpu";
	if (flags & SEEDWALK_CLIENT_NO_WALL)
		argv[n++] = "--no-wall";
	if ((raw = getenv("SEEDWALK_RAW"))) /* a file for the tests */
		argv[n++] = "--raw", argv[n++] = raw;
	long e = sys6(NR_socketpair, 1 /* AF_UNIX */, 1 | 02000000 | 04000 /* SOCK_STREAM, CLOEXEC, NONBLOCK */, 0, P(ends), 0, 0);
	if (e)
		return (int)-e;
	out->socket = ends[0], l.socket = ends[1];
	sys6(NR_rt_sigprocmask, SET_MASK, P(&all), P(&before), 8, 0, 0);
	long pid = sw_child(between, stacks[1] + STACK_BYTES, CLONE_VM | CLONE_VFORK | CLONE_FILES, &l, 0);
	if (pid > 0)
		sys6(NR_wait4, pid, 0, WCLONE, 0, 0, 0);
	sys6(NR_rt_sigprocmask, SET_MASK, P(&before), 0, 8, 0, 0);
	sys3(NR_close, ends[1], 0, 0);
	return pid < 0 ? (int)-pid : l.failed;
}

/* The probe's files need these from session.c: there is no session. */
int sw_silence(struct sw_header *h) { return (void)h, 0; }

/* sw_current returns the runtime's Thread of the calling thread, from the engine; 0 = unknown yet. */
uint64_t sw_current(void)
{
	const struct sw_slot *s = sw_slot_of(sw_shared, own_tid());
	return s ? __atomic_load_n(&s->extra, __ATOMIC_ACQUIRE) : 0;
}

int sw_share(struct engine *e) { return sw_start_at(e->socket, e->pid); }

long sw_receive(struct engine *e, void *to, size_t room)
{
	long n = sys3(NR_read, e->socket, P(to), (long)room);
	return n >= 0 ? n : n == -EAGAIN || n == -EINTR ? NOT_YET : 0;
}

void sw_look(struct engine *e) { (void)e; } /* the helper suspends nothing */

void sw_finish(struct engine *e)
{
	if (e->socket >= 0)
		sys3(NR_shutdown, e->socket, 1 /* SHUT_WR */, 0);
}

/* kill ends a process that does not answer, if the kernel supports pidfds. If the program has adopted the
 * helper, kill collects it, so that no zombie stays. */
static void kill(struct engine *e)
{
	enum { PIDFD = 3 /* P_PIDFD */, ENDED = 1 | 4 /* WNOHANG, WEXITED */, TRIES = 1000 };
	int64_t step[2] = {0, 1000000};
	int32_t info[32]; /* siginfo_t: all 0 if the helper has not ended */
	if (e->pidfd < 0)
		return;
	sys6(NR_pidfd_send_signal, e->pidfd, SIGKILL, 0, 0, 0, 0);
	for (int i = 0; i < TRIES; i++, sys3(NR_nanosleep, P(step), 0, 0)) {
		info[0] = 0;
		if (sys6(NR_waitid, PIDFD, e->pidfd, P(info), ENDED, 0, 0) || info[0])
			return; /* it is no child of this process, or it has been collected */
	}
}

void sw_release(struct engine *e)
{
	sys3(NR_close, e->socket, 0, 0);
	kill(e);
	if (e->pidfd >= 0)
		sys3(NR_close, e->pidfd, 0, 0);
	*e = (struct engine)NO_ENGINE;
}
