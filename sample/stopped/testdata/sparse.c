// The function sparse has a large buffer, uses one byte of it, and calls work. So the kernel has not yet
// created the pages of the stack that hold the rest of the buffer.
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
