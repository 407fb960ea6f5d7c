/* A process with as many mappings as its argument says, most of them of no interest, and a
 * thread that works. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile unsigned long sum;

__attribute__((noinline)) static void leaf(void)
{
	for (int i = 0; i < 100000; i++)
		sum += i * sum;
}

__attribute__((noinline)) static void middle(void)
{
	leaf();
	sum++;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 0, page = sysconf(_SC_PAGESIZE);
	char *region = mmap(0, n * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (region == MAP_FAILED)
		return 1;
	for (long i = 0; i < n; i += 2)
		if (mprotect(region + i * page, page, PROT_READ | PROT_WRITE) != 0)
			return 2; /* vm.max_map_count is lower */
	puts("ready");
	fflush(stdout);
	for (;;) {
		middle();
		sum++;
	}
}
