/* Records for Waits.cs and Events.cs. It is C because the available .NET 10 has no console: a single-file
 * program's framework is trimmed. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#define EXPORT __declspec(dllexport)

static SRWLOCK guard = SRWLOCK_INIT;
static void lock(void) { AcquireSRWLockExclusive(&guard); }
static void unlock(void) { ReleaseSRWLockExclusive(&guard); }
static int self(void) { return (int)GetCurrentThreadId(); }
static SRWLOCK taken[3] = {SRWLOCK_INIT, SRWLOCK_INIT, SRWLOCK_INIT};
static void keep(int which) { AcquireSRWLockExclusive(&taken[which]); }
static void short_sleep(void) { Sleep(1); }
#else
#include <pthread.h>
#include <unistd.h>
#define EXPORT

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static void lock(void) { pthread_mutex_lock(&guard); }
static void unlock(void) { pthread_mutex_unlock(&guard); }
static int self(void) { return (int)gettid(); }
static pthread_mutex_t taken[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static void keep(int which) { pthread_mutex_lock(&taken[which]); }
static void short_sleep(void) { usleep(1000); }
#endif

static int met[3];
static char text[1 << 16];
static size_t used;

/* frames writes space-separated names as a JSON list. */
static size_t frames(char *to, size_t room, const char *names)
{
	size_t n = 0;
	while (*names && n < room) {
		size_t len = strcspn(names, " ");
		n += (size_t)snprintf(to + n, room - n, "\"Waits.%.*s\",", (int)len, names);
		names += len + (names[len] == ' ');
	}
	return n < room ? n : room;
}

/* waits_report buffers a line about a wait until the end, because printing may wait itself. */
EXPORT void waits_report(const char *scenario, const char *expect, long long before, long long after, int min, const char *names)
{
	char list[1024];
	list[frames(list, sizeof list - 1, names)] = 0;
	lock();
	int n = snprintf(text + used, sizeof text - used,
		"{\"scenario\":\"%s\",\"expect\":\"%s\",\"tid\":%d,\"qpc_before\":%lld,\"qpc_after\":%lld,\"min_ms\":%d,\"frames_leaf_to_root\":[%s\"Waits.Measure\"]}\n",
		scenario, expect, self(), before, after, min, list);
	if (n > 0 && used + (size_t)n < sizeof text)
		used += (size_t)n;
	unlock();
}

typedef void (*waits_body)(void);

static void *through[16]; /* return addresses of the last callback's native frames, root first */
static int throughs;

static void passed(void *to)
{
	if (throughs < (int)(sizeof through / sizeof *through))
		through[throughs++] = to;
}

/* Native frames that call managed code. Each does something after its call; otherwise a tail call would
 * remove the frame. */
static __attribute__((noinline)) int deeper(waits_body body, int deep)
{
	volatile int n = deep;
	passed(__builtin_return_address(0));
	if (deep > 0)
		n += deeper(body, deep - 1);
	else
		body();
	return n + 1;
}

/* waits_through calls back through deep + 2 frames, on one thread. */
EXPORT int waits_through(waits_body body, int deep)
{
	throughs = 0;
	passed(__builtin_return_address(0));
	return deeper(body, deep) + 1;
}

/* waits_take takes a lock and keeps it. */
EXPORT void waits_take(int which) { keep(which); }

/* waits_meet returns when two threads have called it. */
EXPORT void waits_meet(int which)
{
	__atomic_fetch_add(&met[which], 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&met[which], __ATOMIC_SEQ_CST) < 2)
		short_sleep();
}

EXPORT void waits_number(const char *name, long long n)
{
	printf("%s %lld\n", name, n);
}

/* waits_pause prints a word, after the buffered lines, and waits for a line of input. */
EXPORT void waits_pause(const char *word)
{
	fwrite(text, 1, used, stdout);
	used = 0;
	for (int i = throughs; i > 0; i--)
		printf("through %p\n", through[i - 1]);
	if (!*word) {
		fflush(stdout);
		return;
	}
	puts(word);
	fflush(stdout);
	for (int c; (c = getchar()) != '\n' && c != EOF;)
		;
}
