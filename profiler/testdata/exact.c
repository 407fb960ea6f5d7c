/* The native half of Exact.cs: the exact processor time of each of its methods.
 * The judge reads CLOCK_THREAD_CPUTIME_ID before and after a call. It uses no timer,
 * no signal, and nothing else that a sampler could share with it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 8 };

static struct {
	char name[32];
	int64_t nanos, calls;
} slots[SLOTS];

static int64_t empty; /* the time that a measurement itself takes, in nanoseconds */

static int64_t nanos(clockid_t clock)
{
	struct timespec t = {0, 0};
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* The processor time of the calling thread, in nanoseconds. */
int64_t exact_clock(void) { return nanos(CLOCK_THREAD_CPUTIME_ID); }

/* The time of the wall, in nanoseconds. */
int64_t exact_now(void) { return nanos(CLOCK_MONOTONIC); }

/* Adds the thread's processor time since begin to a method. */
void exact_add(int slot, int64_t begin)
{
	int64_t used = exact_clock() - begin;
	__atomic_fetch_add(&slots[slot].nanos, used, __ATOMIC_RELAXED);
	__atomic_fetch_add(&slots[slot].calls, 1, __ATOMIC_RELAXED);
}

/* Sets the time that a measurement itself takes, about half a microsecond. exact_report subtracts it. */
void exact_empty(int64_t time) { empty = time; }

void exact_name(int slot, const char *name) { snprintf(slots[slot].name, sizeof slots[slot].name, "%s", name); }

/* Work of native code. */
uint32_t exact_work(int64_t rounds)
{
	uint32_t x = (uint32_t)rounds;
	for (int64_t i = 0; i < rounds; i++) {
		x = x * 1664525u + 1013904223u;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/* Sleeps until the next multiple of a period of CLOCK_MONOTONIC. */
void exact_sleep_until_multiple(int64_t period)
{
	int64_t next = (exact_now() / period + 1) * period;
	struct timespec t = {next / 1000000000, next % 1000000000};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

static struct sockaddr_in loopback(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

/* A listening socket on a port that the kernel chooses. */
int exact_listen(void)
{
	struct sockaddr_in a = loopback(0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 16))
		abort();
	return fd;
}

static void no_delay(int fd)
{
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int exact_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	no_delay(fd);
	return fd;
}

int exact_connect(int listener)
{
	struct sockaddr_in a;
	socklen_t size = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || getsockname(listener, (struct sockaddr *)&a, &size) || connect(fd, (struct sockaddr *)&a, sizeof a))
		abort();
	no_delay(fd);
	return fd;
}

/* Writes a message, and reads one. 0 at the end of the connection. */
int exact_send(int fd)
{
	char message[64] = {0};
	return send(fd, message, sizeof message, MSG_NOSIGNAL) == sizeof message;
}

int exact_receive(int fd)
{
	char message[64];
	return recv(fd, message, sizeof message, MSG_WAITALL) == sizeof message;
}

/* exact_blocked works while the thread blocks all signals. */
uint32_t exact_blocked(int64_t rounds)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	uint32_t x = exact_work(rounds);
	pthread_sigmask(SIG_SETMASK, &old, 0);
	return x;
}

/* exact_read works in the kernel. */
void exact_read(int64_t times)
{
	char text[4096];
	while (times-- > 0) {
		int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
		while (read(fd, text, sizeof text) > 0)
			;
		close(fd);
	}
}

void exact_close(int fd) { shutdown(fd, SHUT_RDWR); }

double exact_number(const char *text) { return atof(text); }

static int reported;

/* Prints a line of JSON for each method. */
void exact_report(void)
{
	for (int i = 0; i < SLOTS; i++)
		if (slots[i].name[0])
			printf("{\"method\":\"%s\",\"cpu_ns\":%lld,\"calls\":%lld}\n", slots[i].name,
			       (long long)(slots[i].nanos - slots[i].calls * empty), (long long)slots[i].calls);
	reported = 1;
}

/* Prints the processor time of the process as the last line, as late as possible: the runtime
 * works on after Main. The time of the main thread is in it: startup is. */
__attribute__((destructor)) static void ended(void)
{
	if (!reported)
		return;
	printf("{\"pid\":%d,\"process_cpu_ns\":%lld}\n", getpid(), (long long)nanos(CLOCK_PROCESS_CPUTIME_ID));
	fflush(stdout);
}
