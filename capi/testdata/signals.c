/* What becomes of samples when somebody changes the handler of the sampler's signal after
 * it was opened. The runtime is made, the one thread this program's. Linux. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "seedwalk.h"

#include "made.h"

enum { OURS = 5 }; /* SIGRTMIN+5 */

static struct sigaction before;
static volatile int called, leave, there;

static void alone(int n, siginfo_t *info, void *context)
{
	(void)n, (void)info, (void)context;
	called++;
}

static void passing(int n, siginfo_t *info, void *context)
{
	called++;
	before.sa_sigaction(n, info, context);
}

static void set(void (*f)(int, siginfo_t *, void *))
{
	struct sigaction a = before;
	a.sa_sigaction = f;
	sigaction(SIGRTMIN + OURS, &a, NULL);
	called = 0;
}

static void set_none(void (*f)(int)) { signal(SIGRTMIN + OURS, f); }

static seedwalk_sampler_request request = {.size = sizeof request};

static int sample(void) { return seedwalk_sampler_sample(&request, NULL); }

static void *worker(void *unused)
{
	seedwalk_sampler_thread_assigned(WORKER, 0);
	there = 1;
	while (!leave)
		usleep(1000);
	return unused;
}

static void say(const char *when, int error)
{
	char text[400];
	seedwalk_sampler_problem(text, sizeof text);
	printf("%s: %d %s\n", when, error, error ? text : "");
}

static int answered;
static void on_stack(void *client, const seedwalk_stack *s)
{
	(void)client;
	answered |= s->thread == WORKER && s->gap != SEEDWALK_GAP_NO_ANSWER;
}

/* On a loaded machine a thread may need more than one question. */
static void say_answered(const char *when)
{
	int error = 0;
	answered = 0;
	for (int i = 0; i < 1000 && !error && !answered; i++)
		error = sample();
	say(when, error);
	printf("\tthe thread answered: %d\n", answered);
}

static void *sampler(void *unused)
{
	request.on_stack = on_stack;
	say_answered("as it was");
	set_none(SIG_IGN);
	say("ignored", sample());
	set_none(SIG_DFL);
	say("without a handler", sample());
	set(alone);
	say("another handler", sample());
	printf("\tit was called: %d\n", called);
	request.flags = SEEDWALK_COPIES;
	say("copies do not need it", sample());
	request.flags = 0;
	say("another handler still", sample());
	set(passing);
	say_answered("a handler that passes on");
	printf("\tit was called: %d\n", called > 1);
	set(alone);
	say("another handler again", sample());
	sigaction(SIGRTMIN + OURS, &before, NULL);
	say_answered("put back");
	return unused;
}

int main(void)
{
	seedwalk_sampler_options options = {.size = sizeof options, .info = &runtime};
	pthread_t w, s;
	make_runtime();
	version = 10, mask = SEEDWALK_SAMPLER_EVENTS, threads = modules = 1;
	say("open", seedwalk_sampler_open(&options));
	sigaction(SIGRTMIN + OURS, NULL, &before);
	seedwalk_sampler_thread_created(WORKER);
	seedwalk_sampler_module_loaded(MODULE);
	pthread_create(&w, NULL, worker, NULL);
	while (!there)
		usleep(1000);
	pthread_create(&s, NULL, sampler, NULL);
	pthread_join(s, NULL);
	leave = 1;
	pthread_join(w, NULL);
	return 0;
}
