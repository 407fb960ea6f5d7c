/* Threads that work in bursts: first in burst_a for 0.3 ms of processor time, then in burst_b
 * for 0.7 ms, then they wait for 3 ms. At the end of the input it prints the nanoseconds of
 * processor time that each has used, by the thread's own clock around each call. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int64_t used[2];
static volatile int stop;

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void spin(void)
{
	for (volatile unsigned i = 0; i < 200; i++)
		;
}

__attribute__((noinline)) void burst_a(int64_t until)
{
	do
		spin();
	while (now() < until);
	__asm__ volatile("");
}

__attribute__((noinline)) void burst_b(int64_t until)
{
	do
		spin();
	while (now() < until);
	__asm__ volatile("" ::: "memory");
}

static void *work(void *unused)
{
	while (!stop) {
		int64_t begin = now();
		burst_a(begin + 300000);
		int64_t middle = now();
		burst_b(middle + 700000);
		int64_t end = now();
		__atomic_fetch_add(&used[0], middle - begin, __ATOMIC_RELAXED);
		__atomic_fetch_add(&used[1], end - middle, __ATOMIC_RELAXED);
		struct timespec wait = {0, 3000000};
		nanosleep(&wait, 0);
	}
	return unused;
}

int main(void)
{
	pthread_t t[2];
	char c;
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, work, 0);
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) == 1)
		;
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	printf("%lld %lld\n", (long long)used[0], (long long)used[1]);
	return 0;
}
