// sparse works below a large buffer of which one byte is used: the stack has pages that do not exist yet.
#include <stdio.h>
#include <unistd.h>

static volatile long sum;

__attribute__((noinline)) void work(void) {
	for (long i = 0; i < 2000000; i++)
		sum += i;
}

__attribute__((noinline)) void sparse(void) {
	volatile char buffer[48 << 10];
	buffer[0] = 1;
	work();
	buffer[0]++;
}

int main(void) {
	puts("ready");
	fflush(stdout);
	for (;;)
		sparse();
}
