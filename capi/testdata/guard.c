/* Handlers of a vendor's own around the library, for guard_test.go:
 *     guard HOW LIBRARY OTHER
 * HOW: linked (LIBRARY is linked, handlers are set in main), early (handlers set by a
 * constructor before Go's start: the archive), dlopen (before the library is opened), between (after it is opened, before
 * seedwalk_open), replaced (as dlopen, but the program sets other handlers, on the alternate
 * stack, before seedwalk_open), otherfirst and otherlast (with another Go library).
 * Prints what is not as it should be; the exit code is 0 if nothing is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "seedwalk.h"

static int failed;
static volatile sig_atomic_t seen;

static void check(const char *what, int ok)
{
	if (!ok) {
		printf("NOT AS IT SHOULD BE: %s\n", what);
		failed = 1;
	}
}

static void vendors(int number) { seen = number; }
static const int signals[] = {SIGSEGV, SIGPROF, SIGUSR1, SIGPIPE};
enum { SIGNALS = sizeof signals / sizeof *signals };

static void set(void)
{
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_handler = vendors;
	for (int i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &a, NULL);
}

/* The program replaces the vendor's handlers. The library must leave the new ones as they are. */
static void replacement(int number) { seen = number; }

static void replace(void)
{
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_handler = replacement;
	a.sa_flags = SA_ONSTACK;
	for (int i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &a, NULL);
}

static void replacement_stays(void)
{
	struct sigaction a;
	for (int i = 0; i < SIGNALS; i++)
		check("a handler set after the vendor's", sigaction(signals[i], NULL, &a) == 0 && a.sa_handler == replacement && a.sa_flags & SA_ONSTACK);
}

static void vendors_still(const char *when)
{
	char what[96];
	for (int i = 0; i < SIGNALS; i++) {
		struct sigaction a;
		sigaction(signals[i], NULL, &a);
		snprintf(what, sizeof what, "signal %d %s", signals[i], when);
		check(what, a.sa_handler == vendors && !(a.sa_flags & SA_ONSTACK));
		seen = 0;
		raise(signals[i]);
		check(what, seen == signals[i]);
	}
}

static int (*open_)(const seedwalk_options *, seedwalk_handle *);
static int (*close_)(seedwalk_handle);

static void *load(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW);
	if (!lib)
		printf("%s\n", dlerror());
	check("dlopen", lib != NULL);
	return lib;
}

static void load_ours(const char *path)
{
	void *lib = load(path);
	if (!lib)
		return;
	*(void **)&open_ = dlsym(lib, "seedwalk_open");
	*(void **)&close_ = dlsym(lib, "seedwalk_close");
}

static void open_and_close(void)
{
	seedwalk_handle h;
	check("open", open_(NULL, &h) == SEEDWALK_OK);
	check("close", close_(h) == SEEDWALK_OK);
}

static void other_works(void *other, const char *when)
{
	int (*works)(void);
	*(void **)&works = dlsym(other, "othergo_works");
	check(when, works && works() == 1);
}

#ifdef LINKED
/* No signal but SIGURG is handled by anybody. */
static void none_handled(const char *when)
{
	char what[96];
	for (int s = 1; s < NSIG; s++) {
		struct sigaction a;
		if (s == SIGURG || sigaction(s, NULL, &a) != 0)
			continue;
		snprintf(what, sizeof what, "signal %d %s", s, when);
		check(what, a.sa_handler == SIG_DFL || a.sa_handler == SIG_IGN);
	}
}

__attribute__((constructor(102))) static void early(void)
{
#ifdef EARLY
	set();
#endif
}
static int linked(const char *how)
{
	open_ = seedwalk_open;
	close_ = seedwalk_close;
	if (strcmp(how, "untouched") == 0) {
		open_and_close();
		none_handled("after open");
		set();
	} else if (strcmp(how, "early") != 0) {
		set();
	}
	return 1;
}
#else
static int linked(const char *how) { return (void)how, 0; }
#endif

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	if (argc < 4)
		return 2;
	if (strncmp(how, "other", 5) == 0) {
		int first = strcmp(how, "otherfirst") == 0;
		void *other = NULL;
		if (first)
			other = load(argv[3]);
		else
			load_ours(argv[2]);
		if (first) {
			other_works(other, "the other alone");
			load_ours(argv[2]);
		} else {
			other = load(argv[3]);
		}
		for (int i = 0; i < 3 && !failed; i++) {
			open_and_close();
			other_works(other, "the other beside ours");
		}
		return failed;
	}
	if (!linked(how)) {
		int replaced = strcmp(how, "replaced") == 0;
		if (replaced || strcmp(how, "dlopen") == 0)
			set();
		load_ours(argv[2]);
		if (replaced && !failed) {
			usleep(100000); /* Go has started */
			replace();
			open_and_close();
			replacement_stays();
			return failed;
		}
		if (strcmp(how, "between") == 0) {
			usleep(100000); /* Go has started */
			set();
		}
	}
	if (failed)
		return failed;
	open_and_close();
	vendors_still("after the first open");
	set();
	open_and_close();
	vendors_still("after the second open");
	return failed;
}
