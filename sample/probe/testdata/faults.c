/* A program that handles faults as the CLR does: on the alternate stack, where SIGSEGV is
 * blocked, and it leaves the handler by a jump. It loads the probe as the CLR does, and
 * follows the commands of its input, one a line. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };
static jmp_buf before;
static volatile int came;

static void own(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	came += info->si_code == SI_TKILL;
}

/* The exception: whatever the kernel has blocked for this handler stays so, but for what
 * the runtime takes care of. */
static void bad_address(int sig, siginfo_t *info, void *context)
{
	sigset_t open;
	(void)info, (void)context;
	sigemptyset(&open);
	sigaddset(&open, sig);
	sigaddset(&open, SIGRTMIN);
	pthread_sigmask(SIG_UNBLOCK, &open, 0);
	_longjmp(before, 1);
}

static int handlers(void)
{
	stack_t stack = {.ss_sp = malloc(16 * PAGE), .ss_size = 16 * PAGE};
	struct sigaction a = {.sa_sigaction = own, .sa_flags = SA_SIGINFO | SA_RESTART}, b = {.sa_sigaction = bad_address, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigaddset(&b.sa_mask, SIGRTMIN);
	return sigaltstack(&stack, 0) || sigaction(SIGRTMIN, &a, 0) || sigaction(SIGSEGV, &b, 0);
}

/* As while a fault is being handled. */
static void fault_blocked(int yes)
{
	sigset_t fault;
	sigemptyset(&fault);
	sigaddset(&fault, SIGSEGV);
	pthread_sigmask(yes ? SIG_BLOCK : SIG_UNBLOCK, &fault, 0);
}

static int is_own(int sig)
{
	struct sigaction a;
	return sigaction(sig, 0, &a) == 0 && a.sa_sigaction == own;
}

static void take(int sig)
{
	struct sigaction a = {.sa_sigaction = own, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigaction(sig, &a, 0);
}

static volatile pid_t thread;

/* A thread with so much on its stack, which waits. */
static void *deep(void *unused)
{
	volatile char room[300 << 10];
	room[sizeof room / 2] = 1;
	thread = (pid_t)syscall(SYS_gettid);
	while (room[sizeof room / 2])
		usleep(100000);
	return unused;
}

/* cramped runs on an alternate stack that is *more bytes larger than the kernel's minimum. The page below it is
 * unreadable. */
static void *cramped(void *more)
{
	size_t size = getauxval(AT_MINSIGSTKSZ) + *(size_t *)more;
	char *page = mmap(0, PAGE + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = page + PAGE, .ss_size = size};
	if (mprotect(page, PAGE, PROT_NONE) || sigaltstack(&stack, 0))
		exit(12);
	thread = (pid_t)syscall(SYS_gettid);
	for (;;)
		usleep(100000);
}

static void handle_on(int sig)
{
	(void)sig;
	thread = (pid_t)syscall(SYS_gettid);
	for (;;)
		usleep(100000);
}

/* A thread that handles a signal on its alternate stack, which is in one mapping with its own. */
static void *handles(void *low)
{
	stack_t stack = {.ss_sp = *(void **)low, .ss_size = 16 * PAGE};
	struct sigaction a = {.sa_handler = handle_on, .sa_flags = SA_ONSTACK};
	if (sigaltstack(&stack, 0) || sigaction(SIGUSR1, &a, 0))
		exit(13);
	raise(SIGUSR1);
	return 0;
}

/* Starts such a thread: alternate stack, guard page, and stack. It returns 1 if the kernel lacks such pages. */
static pid_t merged(void)
{
	enum { GUARD_INSTALL = 102, STACK = 64 * PAGE };
	static char *low;
	pthread_attr_t attr;
	pthread_t t;
	low = mmap(0, 17 * PAGE + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (madvise(low + 16 * PAGE, PAGE, GUARD_INSTALL))
		return 1;
	thread = 0;
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, low + 17 * PAGE, STACK);
	if (pthread_create(&t, &attr, handles, &low))
		return 0;
	while (!thread)
		usleep(1000);
	return thread;
}

static pid_t started(void *(*what)(void *), size_t more)
{
	pthread_t t;
	thread = 0;
	if (pthread_create(&t, 0, what, &more))
		return 0;
	while (!thread)
		usleep(1000);
	return thread;
}

int main(int argc, char **argv)
{
	void *lib = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL), **factory;
	int32_t (*get)(const void *, const void *, void **) = lib ? (int32_t (*)(const void *, const void *, void **))dlsym(lib, "DllGetClassObject") : 0;
	struct { void **table; } *profiler;
	char line[16];
	setvbuf(stdout, 0, _IOLBF, 0);
	if (handlers() || !get || get("", "", (void **)&factory))
		return 10;
	if (((int32_t (*)(void *, void *, const void *, void **))(*(void ***)factory)[3])(factory, 0, "", (void **)&profiler))
		return 11;
	((int32_t (*)(void *, void *))profiler->table[3])(profiler, 0);
	printf("ready\n");
	for (;;) {
		pid_t new = 0;
		ssize_t n = read(0, line, 2);
		if (n < 0 && errno == EINTR)
			continue;
		if (n != 2)
			return 0;
		if (line[0] == 'f' && !_setjmp(before))
			*(volatile char *)(uintptr_t)8 = 1;
		if (line[0] == 'b' || line[0] == 'u')
			fault_blocked(line[0] == 'b');
		if (line[0] == 'k')
			syscall(SYS_tgkill, getpid(), getpid(), SIGRTMIN);
		if (line[0] == 'g')
			take(SIGURG);
		for (int i = 0; line[0] == 'p' && i < 2000; i++)
			((int32_t (*)(void *, void *))profiler->table[3])(profiler, 0);
		if (line[0] == 'd')
			new = started(deep, 0);
		if (line[0] == 'm')
			new = merged();
		if (line[0] == 's' || line[0] == 't')
			new = started(cramped, line[0] == 's' ? 3 << 10 : 512);
		if (new)
			printf("%d\n", (int)new);
		else
			printf("came %d, own %d\n", came, is_own(line[0] == 'q' ? SIGURG : SIGRTMIN));
	}
}
