/* Where a thread's processor time goes, by a judge that shares nothing with the
 * profiler: a timer of the thread's own clock whose handler notes the instruction
 * pointer. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { THREADS = 16, ROOM = 1 << 16 };

static struct judged {
	char name[32];
	long tid;
	timer_t timer;
	uint32_t count;
	uint64_t ips[ROOM];
} all[THREADS];
static int used;
static __thread struct judged *mine;

static void note(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info;
	const ucontext_t *u = context;
	if (mine && mine->count < ROOM)
		mine->ips[mine->count++] = (uint64_t)u->uc_mcontext.gregs[REG_RIP];
}

static void nothing(int sig) { (void)sig; }

/* Takes the signal that a profiler in this process would like to use. */
void bias_take(void)
{
	struct sigaction act;
	memset(&act, 0, sizeof act);
	act.sa_handler = nothing;
	act.sa_flags = SA_RESTART;
	sigaction(SIGURG, &act, NULL);
}

int bias_begin(const char *name, long period_ns)
{
	struct sigaction act;
	memset(&act, 0, sizeof act);
	act.sa_sigaction = note;
	act.sa_flags = SA_SIGINFO | SA_RESTART;
	sigaction(SIGPROF, &act, NULL);
	int i = __atomic_fetch_add(&used, 1, __ATOMIC_RELAXED);
	if (i >= THREADS)
		return -1;
	mine = &all[i];
	snprintf(mine->name, sizeof mine->name, "%s", name);
	mine->tid = syscall(SYS_gettid);
	struct sigevent event;
	memset(&event, 0, sizeof event);
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGPROF;
	event._sigev_un._tid = (int)mine->tid;
	struct itimerspec spec = {{0, period_ns}, {0, period_ns}};
	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &mine->timer))
		return -1;
	return timer_settime(mine->timer, 0, &spec, NULL);
}

void bias_end(void)
{
	timer_delete(mine->timer);
	mine = NULL;
}

/* Work of native code for a P/Invoking thread. */
unsigned bias_native(unsigned rounds)
{
	unsigned x = rounds;
	for (unsigned i = 0; i < rounds; i++)
		x = x * 1664525u + 1013904223u;
	return x;
}

int bias_write(const char *path)
{
	FILE *f = fopen(path, "w");
	if (!f)
		return -1;
	for (int i = 0; i < used && i < THREADS; i++)
		for (uint32_t k = 0; k < all[i].count; k++)
			fprintf(f, "%s %ld %llx\n", all[i].name, all[i].tid, (unsigned long long)all[i].ips[k]);
	return fclose(f);
}

/* The processor time that the program has used, in seconds. */
double bias_used(void)
{
	struct timespec t = {0, 0};
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bias_number(const char *text) { return atof(text); }

void bias_say(const char *text)
{
	puts(text);
	fflush(stdout);
}
