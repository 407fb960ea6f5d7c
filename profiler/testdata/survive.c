/* The native part of the survival program: sleeps that count interruptions, threads that block every
 * signal, separate stacks, forks, and an exec. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static int interrupted, slept;

/* Sleeps repeatedly; a sleep that is interrupted is counted. */
void survive_sleep(int times, int milliseconds)
{
	for (int i = 0; i < times; i++) {
		struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
		__atomic_fetch_add(&slept, 1, __ATOMIC_RELAXED);
		if (nanosleep(&t, NULL) && errno == EINTR)
			__atomic_fetch_add(&interrupted, 1, __ATOMIC_RELAXED);
	}
}

/* Gives the thread an alternate stack. The runtime unmaps it as its own. */
void survive_room(void)
{
	const size_t size = 256 << 10;
	stack_t stack = {.ss_sp = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), .ss_size = size};
	if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL))
		abort();
}

static int urgent;
static struct sigaction before;

static void on_urgent(int sig, siginfo_t *si, void *context)
{
	__atomic_fetch_add(&urgent, 1, __ATOMIC_RELAXED);
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(sig, si, context);
}

/* Takes SIGURG as the runtime does for PosixSignalRegistration: the handler calls the one before it. */
void survive_urgent(void)
{
	struct sigaction a = {.sa_sigaction = on_urgent, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	if (sigaction(SIGURG, &a, &before))
		abort();
}

void survive_report(int well, int bad, int caught, int made, int back)
{
	printf("interrupted %d of %d\n", interrupted, slept);
	if (before.sa_sigaction)
		printf("urgent %d\n", urgent);
	if (well)
		puts("SURVIVED");
	else
		printf("HURT %d %d %d %d\n", bad, caught, made, back);
	fflush(stdout);
}

double survive_number(const char *text) { return atof(text); }

static unsigned spin(unsigned rounds)
{
	volatile unsigned x = rounds;
	for (unsigned i = 0; i < rounds; i++)
		x = x * 1664525u + 1013904223u;
	return x;
}

/* Works with every signal blocked and calls back between. */
void survive_blocked(int rounds, void (*call)(int))
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (int i = 0; i < rounds; i++) {
		spin(200000);
		call(i);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static __thread ucontext_t home, fibre;
static __thread int fibre_rounds;

static void on_fibre(void)
{
	for (;;) {
		spin(100000 + (unsigned)fibre_rounds);
		swapcontext(&fibre, &home);
	}
}

/* Runs on small stacks of its own between guard pages; each is unmapped afterwards. */
void survive_fibres(int rounds)
{
	const size_t page = 4096, size = 16 * page;
	for (fibre_rounds = 0; fibre_rounds < rounds; fibre_rounds++) {
		char *stack = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (stack == MAP_FAILED || mprotect(stack + page, size, PROT_READ | PROT_WRITE))
			return;
		getcontext(&fibre);
		fibre.uc_stack.ss_sp = stack + page;
		fibre.uc_stack.ss_size = size;
		fibre.uc_link = NULL;
		makecontext(&fibre, on_fibre, 0);
		for (int i = 0; i < 4; i++)
			swapcontext(&home, &fibre);
		munmap(stack, size + 2 * page);
	}
}

/* Forks children that work a little and end; 0 if all ended normally. */
int survive_fork(int times)
{
	for (int i = 0; i < times; i++) {
		pid_t child = fork();
		if (child == 0) {
			spin(1000000);
			_exit(7);
		}
		int status = 0;
		while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		if (child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
			return i + 1;
	}
	return 0;
}

/* Calls exec while threads are busy and timers run. */
int survive_exec(void)
{
	execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo EXEC DONE; exit 9", (char *)NULL);
	return errno;
}
