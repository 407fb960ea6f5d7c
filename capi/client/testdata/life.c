/* A program that uses the client library. The time of each sample of the helper is its number.
 *     life close: seedwalk_sampler_close while on_stack does not return, and again after it has
 *     life fork: children of a process whose threads are inside the library and in its signal handler
 *     life adopt: a process that adopts orphans
 *     life full: a process with three free descriptors
 *     life keep FILE: copies are kept in a file, because there is no helper
 *     life no-space FILE: there is no space for that file */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seedwalk_client.h"

enum { STORM = 3, CHILDREN = 30, COPIERS = 8, LIMIT_S = 300 };

static sem_t arrived, proceed;
static uint64_t stacks, stopping;

static void want(const char *what, int got, int expected)
{
	if (got == expected)
		return;
	printf("%s: %d, want %d\n", what, got, expected);
	exit(1);
}

/* The first call of on_stack waits for proceed. The second call forks, and returns in both processes. */
static void on_stack(void *child, const seedwalk_stack *s)
{
	uint64_t n = __atomic_fetch_add(&stacks, 1, __ATOMIC_SEQ_CST);
	want("a sample is lost", (int)s->time_ns, (int)n);
	if (n == 0)
		sem_post(&arrived), sem_wait(&proceed);
	else if (n == 1)
		*(int *)child = (int)fork();
}

static void *sampler(void *nothing)
{
	int child = -1, status = -1, e;
	seedwalk_sampler_request q = {.size = sizeof q, .on_stack = on_stack, .client = &child};
	while (!__atomic_load_n(&stopping, __ATOMIC_SEQ_CST)) {
		e = seedwalk_sampler_sample(&q, 0);
		if (child == 0)
			_exit(e == SEEDWALK_OK && stacks == 2 && seedwalk_sampler_sample(&q, 0) == SEEDWALK_NOT_OPEN ? 0 : 1);
		want("sample", e == SEEDWALK_NOT_OPEN || e == SEEDWALK_BUSY ? SEEDWALK_OK : e, SEEDWALK_OK); /* while it closes */
		usleep(1000);
	}
	waitpid(child, &status, 0);
	want("a child of on_stack", status, 0);
	return nothing;
}

static void *storm(void *nothing)
{
	while (!__atomic_load_n(&stopping, __ATOMIC_SEQ_CST))
		raise(SIGURG);
	return nothing;
}

/* no_helper waits until the helper of this process has ended. */
static void no_helper(void)
{
	char command[100];
	snprintf(command, sizeof command, "pgrep -f 'seedwalk[ ]engine --pid %d ' >/dev/null", (int)getpid());
	while (system(command) == 0)
		usleep(10000);
}

static void forked(void)
{
	for (int i = 0; i < CHILDREN; i++) {
		int status = -1;
		pid_t child = fork();
		if (!child) {
			const seedwalk_stack *s;
			want("next in a child", seedwalk_sampler_next(&s), SEEDWALK_NOT_OPEN);
			want("copy in a child", seedwalk_sampler_copy(1), SEEDWALK_NOT_OPEN);
			want("close in a child", seedwalk_sampler_close(), SEEDWALK_NOT_OPEN);
			want("open in a child", seedwalk_sampler_open(0), SEEDWALK_OK);
			want("next in a child that opened", seedwalk_sampler_next(&s), SEEDWALK_OK);
			want("close in a child that opened", seedwalk_sampler_close(), SEEDWALK_OK);
			exit(0);
		}
		waitpid(child, &status, 0);
		want("a child", status, 0);
	}
}

/* adopting is a process 1 of a container: the helper becomes its child, and is collected. */
static void adopting(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	want("open by an adopter", seedwalk_sampler_open(0), SEEDWALK_OK);
	want("the helper is a child", waitpid(-1, 0, WNOHANG), 0);
	want("close by an adopter", seedwalk_sampler_close(), SEEDWALK_OK);
	want("children", waitpid(-1, 0, WNOHANG) < 0 && errno == ECHILD, 1);
}

/* full checks that the helper has no descriptor of a program that has hardly a free one. */
static void full(void)
{
	struct rlimit before, few;
	char command[200];
	int lowest = dup(1);
	close(lowest);
	getrlimit(RLIMIT_NOFILE, &before);
	few = before, few.rlim_cur = (rlim_t)lowest + 3;
	setrlimit(RLIMIT_NOFILE, &few);
	want("open with few descriptors", seedwalk_sampler_open(0), SEEDWALK_OK);
	setrlimit(RLIMIT_NOFILE, &before);
	snprintf(command, sizeof command,
		"test $(readlink /proc/$(pgrep -f 'seedwalk[ ]engine --pid %d ')/fd/1) = /dev/null", (int)getpid());
	want("the helper has the program's output", system(command), 0);
	want("close with few descriptors", seedwalk_sampler_close(), SEEDWALK_OK);
}

/* problem checks the text of the last problem. */
static void problem(const char *has)
{
	char text[400];
	seedwalk_sampler_problem(text, sizeof text);
	if (strstr(text, has))
		return;
	printf("the problem is %s, without %s\n", text, has);
	exit(1);
}

static int configure(const char *keep, uint32_t size)
{
	static char engine[360]; /* "/no////.../tool" */
	memset(engine, '/', sizeof engine - 1);
	memcpy(engine, "/no", 3), memcpy(engine + sizeof engine - 5, "tool", 4);
	seedwalk_client_options o = {.size = size, .engine = engine, .keep = keep};
	return seedwalk_client_configure(&o);
}

/* fill copies until the file has no room, and returns the number of copies. */
static uint64_t fill(void)
{
	uint64_t n = 0;
	int e;
	while (!(e = seedwalk_sampler_copy(n)) && n < 1 << 20)
		n++;
	want("copy into a full file", e, SEEDWALK_FULL);
	return n;
}

static void *filling(void *n)
{
	*(uint64_t *)n = fill();
	return 0;
}

/* copying copies into a full file, and goes on after the sampler is closed. */
static void *copying(void *full)
{
	while (!__atomic_load_n(&stopping, __ATOMIC_RELAXED))
		if (seedwalk_sampler_copy(1) == SEEDWALK_FULL)
			__atomic_fetch_add((uint64_t *)full, 1, __ATOMIC_RELAXED);
	return 0;
}

/* mapped returns how many mappings of a file this process has. */
static int mapped(const char *path)
{
	char line[2000];
	int n = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	want("open /proc/self/maps", f != 0, 1);
	while (fgets(line, sizeof line, f))
		n += strstr(line, path) != 0;
	fclose(f);
	return n;
}

/* sizes passes structures of other sizes, by the rules of seedwalk.h. */
static void sizes(const seedwalk_sampler_request *q)
{
	struct {
		seedwalk_sampler_result known;
		uint64_t later[2];
	} newer;
	memset(&newer, 0xff, sizeof newer);
	newer.known.size = sizeof newer;
	want("a newer result", seedwalk_sampler_sample(q, &newer.known), SEEDWALK_OK);
	want("what the library does not know of it", newer.later[0] == 0 && newer.later[1] == 0, 1);
	want("the size of it", newer.known.size == sizeof newer, 1);
	newer.known.size = offsetof(seedwalk_sampler_result, suspensions) - 1;
	want("a short result", seedwalk_sampler_sample(q, &newer.known), SEEDWALK_SHORT_STRUCT);
	newer.known.size = 4097;
	want("a result without a size", seedwalk_sampler_sample(q, &newer.known), SEEDWALK_UNKNOWN_FIELD);
	static seedwalk_sampler_request unset; /* what follows it in memory must not matter */
	unset.size = 0xcccccccc;
	want("a request without a size", seedwalk_sampler_sample(&unset, 0), SEEDWALK_UNKNOWN_FIELD);
}

/* keep fills a file with two threads, and closes while others copy. It prints the number of copies, and of
 * dropped ones. */
static void keep(const char *path)
{
	char other[1000], link[1000];
	const seedwalk_stack *s = (void *)1;
	int status = -1;
	uint64_t n[2], full = 0;
	pthread_t thread, copiers[COPIERS];
	snprintf(other, sizeof other, "%s-2", path), snprintf(link, sizeof link, "%s-link", path);
	want("configure as an old program", configure(path, offsetof(seedwalk_client_options, keep)), SEEDWALK_OK);
	want("open without a helper", seedwalk_sampler_open(0), SEEDWALK_NO_ENGINE);
	want("configure", configure(path, sizeof(seedwalk_client_options)), SEEDWALK_OK);
	want("open with a file", seedwalk_sampler_open(0), SEEDWALK_OK);
	problem("copies are kept in "), problem(path), problem("; cannot run /no////");
	want("open twice", seedwalk_sampler_open(0), SEEDWALK_SECOND);
	want("next", seedwalk_sampler_next(&s), SEEDWALK_OK);
	want("a stack", s != 0, 0);
	pid_t child = fork();
	if (!child) {
		want("copy in a child", seedwalk_sampler_copy(1ull << 40), SEEDWALK_NOT_OPEN);
		want("close in a child", seedwalk_sampler_close(), SEEDWALK_NOT_OPEN);
		configure(other, sizeof(seedwalk_client_options));
		want("open in a child", seedwalk_sampler_open(0), SEEDWALK_OK);
		want("copy in a child that opened", seedwalk_sampler_copy(1ull << 40), SEEDWALK_OK);
		want("mappings in a child that opened", mapped(path), 1);
		want("close in a child that opened", seedwalk_sampler_close(), SEEDWALK_OK);
		exit(0);
	}
	waitpid(child, &status, 0);
	want("a child", status, 0);
	usleep(600000); /* a helper without a heartbeat for as long counts as dead */
	pthread_create(&thread, 0, filling, &n[1]);
	n[0] = fill();
	pthread_join(thread, 0);
	seedwalk_sampler_request q = {.size = sizeof q, .on_stack = on_stack};
	seedwalk_sampler_result r = {.size = sizeof r};
	want("sample", seedwalk_sampler_sample(&q, &r), SEEDWALK_OK);
	want("stacks", r.stacks, 0);
	sizes(&q);
	for (int i = 0; i < COPIERS; i++)
		pthread_create(&copiers[i], 0, copying, &full);
	while (__atomic_load_n(&full, __ATOMIC_RELAXED) < 100000)
		usleep(1000);
	want("close", seedwalk_sampler_close(), SEEDWALK_OK);
	want("mappings after close", mapped(path), 0);
	__atomic_store_n(&stopping, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < COPIERS; i++)
		pthread_join(copiers[i], 0);
	want("copy after close", seedwalk_sampler_copy(1), SEEDWALK_NOT_OPEN);
	want("open with a file that exists", seedwalk_sampler_open(0), SEEDWALK_SYSTEM);
	problem("File exists");
	want("make a link", symlink("/tmp/nothing-here", link), 0);
	configure(link, sizeof(seedwalk_client_options));
	want("open with a link", seedwalk_sampler_open(0), SEEDWALK_SYSTEM);
	want("copy after that", seedwalk_sampler_copy(1), SEEDWALK_NOT_OPEN);
	printf("%d %lu %lu\n", (int)getpid(), (unsigned long)(n[0] + n[1]), (unsigned long)(r.dropped + full));
}

/* no_space opens with a file for which the disk has no space. */
static void no_space(const char *path)
{
	configure(path, sizeof(seedwalk_client_options));
	want("open without space", seedwalk_sampler_open(0), SEEDWALK_SYSTEM);
	problem("cannot reserve the space of ");
	want("the file is left", access(path, F_OK), -1);
}

/* refused makes calls that an open sampler refuses. */
static void refused(void)
{
	char text[400];
	seedwalk_sampler_request q = {.size = sizeof q, .flags = SEEDWALK_COPIES | SEEDWALK_SOURCES};
	want("open twice", seedwalk_sampler_open(0), SEEDWALK_SECOND);
	seedwalk_sampler_problem(text, sizeof text);
	want("its text is about suspensions", strstr(text, "suspend") != 0, 0);
	want("sample with the flags of the header", seedwalk_sampler_sample(&q, 0), SEEDWALK_OK);
	q.flags |= 1u << 31;
	want("sample with a flag of the future", seedwalk_sampler_sample(&q, 0), SEEDWALK_UNKNOWN_FIELD);
}

int main(int argc, char **argv)
{
	pthread_t threads[1 + STORM];
	int forks = argc > 1 && !strcmp(argv[1], "fork"), n = 0;
	struct sigaction a;
	setvbuf(stdout, 0, _IONBF, 0);
	alarm(LIMIT_S);
	if (argc > 1 && (!strcmp(argv[1], "adopt") || !strcmp(argv[1], "full")))
		return argv[1][0] == 'a' ? adopting() : full(), 0;
	if (argc > 2)
		return argv[1][0] == 'k' ? keep(argv[2]) : no_space(argv[2]), 0;
	want("open", seedwalk_sampler_open(0), SEEDWALK_OK);
	refused();
	seedwalk_sampler_request q = {.size = sizeof q};
	seedwalk_sampler_result r = {.size = sizeof r};
	want("sample", seedwalk_sampler_sample(&q, &r), SEEDWALK_OK);
	want("threads", r.threads, 1);
	pthread_create(&threads[n++], 0, sampler, 0);
	sem_wait(&arrived);
	for (int i = 0; forks && i < STORM; i++)
		pthread_create(&threads[n++], 0, storm, 0);
	if (forks)
		forked();
	else
		want("close while on_stack runs", seedwalk_sampler_close(), SEEDWALK_BUSY);
	sem_post(&proceed);
	while (__atomic_load_n(&stacks, __ATOMIC_SEQ_CST) < 10)
		usleep(1000);
	want("close", seedwalk_sampler_close(), SEEDWALK_OK);
	want("close again", seedwalk_sampler_close(), SEEDWALK_NOT_OPEN);
	sigaction(SIGURG, 0, &a);
	want("the signal has a handler", a.sa_handler != SIG_DFL, 0);
	no_helper();
	__atomic_store_n(&stopping, 1, __ATOMIC_SEQ_CST);
	while (n)
		pthread_join(threads[--n], 0);
	want("open again", seedwalk_sampler_open(0), SEEDWALK_OK);
	want("close at the end", seedwalk_sampler_close(), SEEDWALK_OK);
	return 0;
}
