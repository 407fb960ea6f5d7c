/* Runs the threads of a world step by step, as the test on the other end of each
 * thread's socket says: harness THREADS, with the sockets from descriptor 3 on. */
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void world_reset(void);
void world_thread(int i);

enum { FIRST = 3, MESSAGE = 64 };

static __thread int port, muted;
static __thread jmp_buf out;

static void tell(char kind, const char *what)
{
	char m[MESSAGE] = {kind};
	strncpy(m + 1, what, sizeof m - 2);
	if (write(port, m, sizeof m) != sizeof m)
		_exit(1);
}

static char asked(void)
{
	char c;
	if (read(port, &c, 1) != 1)
		_exit(0);
	return c;
}

static void step(char kind, const char *what)
{
	if (muted || !port)
		return;
	tell(kind, what);
	if (asked() != 'g')
		longjmp(out, 1);
}

void sw_point(const char *what) { step('P', what); }
void sw_wait(const char *what) { step('W', what); }
void sw_fault(const char *what) { step('F', what); }

static void *life(void *arg)
{
	int i = (int)(intptr_t)arg;
	port = FIRST + i;
	for (;;) {
		char c = asked();
		muted = c == 'r';
		if (setjmp(out) == 0) {
			if (c == 'r')
				world_reset();
			else
				world_thread(i);
		}
		tell('E', "");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t t;
	for (int i = 1; i < n; i++)
		if (pthread_create(&t, NULL, life, (void *)(intptr_t)i))
			return 1;
	life(NULL);
	return 0;
}
