// Loads a library with Go in it, and tells what its runtime does:
//     load LIBRARY peek OFFSET   the 32-bit word at that offset of its image
//     load LIBRARY loop          how many SIGURG its loop met
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int urgent;

static void on_urgent(int signal)
{
	(void)signal;
	atomic_fetch_add(&urgent, 1);
}

static int peek(void *library, const char *offset)
{
	struct link_map *map;
	if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
		return 1;
	usleep(200000); // the runtime starts on a thread of its own
	uint32_t word;
	memcpy(&word, (const char *)map->l_addr + strtoull(offset, NULL, 10), sizeof word);
	printf("%u\n", word);
	return 0;
}

// loop calls what collects beside a loop without calls; Go preempts that by SIGURG.
static int loop(void *library)
{
	void (*busy)(void) = (void (*)(void))(uintptr_t)dlsym(library, "busy");
	void (*done)(void) = (void (*)(void))(uintptr_t)dlsym(library, "warm");
	if (busy == NULL || done == NULL)
		return 1;
	done(); // the runtime has started, its handlers are set
	struct sigaction a = {.sa_handler = on_urgent, .sa_flags = SA_ONSTACK | SA_RESTART};
	sigaction(SIGURG, &a, NULL);
	busy();
	printf("%d\n", atomic_load(&urgent));
	return 0;
}

int main(int argc, char **argv)
{
	void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (library == NULL) {
		fprintf(stderr, "%s\n", argc > 2 ? dlerror() : "load LIBRARY peek OFFSET | loop");
		return 2;
	}
	int failed = argc > 3 ? peek(library, argv[3]) : loop(library);
	fflush(stdout);
	_exit(failed);
}
