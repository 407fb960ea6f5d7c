/* Threads that sleep for good: sleepers N. It says "ready" when all do, or are about to. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *sleeper(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_attr_t small;
	pthread_t t;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 1 << 16);
	for (int i = 0; i < n; i++)
		if (pthread_create(&t, &small, sleeper, 0))
			return 1;
	puts("ready");
	fflush(stdout);
	sleeper(0);
}
