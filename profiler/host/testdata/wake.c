/* Prints how capture_linux.c classifies waiting threads, with and without a signal to what they wait for.
 * One line each. */
#include "../capture_linux.c"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t first = PTHREAD_COND_INITIALIZER, second = PTHREAD_COND_INITIALIZER; /* may be next to each other */
static volatile int stop;

static void at(pthread_cond_t *c)
{
	pthread_mutex_lock(&lock);
	while (!stop)
		pthread_cond_wait(c, &lock);
	pthread_mutex_unlock(&lock);
}

static void at_first(void) { at(&first); }
static void at_second(void) { at(&second); }
static void at_mutex(void) { pthread_mutex_lock(&held), pthread_mutex_unlock(&held); }
static void asleep(void)
{
	while (!stop)
		usleep(1000);
}
static void running(void)
{
	while (!stop)
		;
}

enum { MS = 1000, LIMIT = 60 * 1000 }; /* limit of a test that hangs */

static struct {
	const char *name;
	void (*body)(void);
	int waits; /* at a condition variable */
	long tid;
	pthread_t thread;
} all[] = {{"told", at_first, 1, 0, 0}, {"not told", at_second, 1, 0, 0}, {"at a mutex", at_mutex, 0, 0, 0}, {"asleep", asleep, 0, 0, 0}, {"running", running, 0, 0, 0}};
enum { ALL = sizeof all / sizeof *all };

static void *life(void *number)
{
	long i = (long)number;
	__atomic_store_n(&all[i].tid, syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	all[i].body();
	return NULL;
}

/* Captures a thread's registers, repeated until it has reached its wait. */
static void ask(int i)
{
	for (int ms = 0; ms < LIMIT; ms++, usleep(MS)) {
		sw_ask(i, 1, (uint64_t)all[i].tid, ~(uint64_t)0 >> 20);
		if (sw_await(i, 1000 * MS) != SW_CAPTURED)
			continue;
		sw_wait_note(i);
		if (waited[i].known || !all[i].waits)
			return;
	}
	printf("%s: it never waits\n", all[i].name);
}

static void ended(const char *when)
{
	static const char *const words[] = {"unknown", "not woken", "woken"};
	for (int i = 0; i < ALL; i++)
		printf("%s, %s: %s\n", when, all[i].name, words[sw_wait_ended(i)]);
}

int main(void)
{
	char a = 1, b = 0;
	if (read_checked(&b, (uint64_t)&a, 1) != 1)
		return puts("refused"), 0;
	if (sw_capture_init(1 << 20))
		return 1;
	pthread_mutex_lock(&held);
	for (long i = 0; i < ALL; i++) {
		pthread_create(&all[i].thread, NULL, life, (void *)i);
		while (!__atomic_load_n(&all[i].tid, __ATOMIC_SEQ_CST))
			usleep(MS);
	}
	for (int i = 0; i < ALL; i++)
		ask(i);
	ended("before");
	pthread_cond_broadcast(&first);
	ended("after");
	stop = 1;
	pthread_mutex_unlock(&held);
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&first), pthread_cond_broadcast(&second);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < ALL; i++)
		pthread_join(all[i].thread, NULL);
	return 0;
}
