/* The native half of Demo.cs: a sort that calls back into managed code, and a
 * loop that keeps the processor busy. Built without frame pointers. */
#include <stddef.h>
#include <stdint.h>

typedef int (*compare_fn)(int a, int b);

static void swap(int *a, int *b)
{
	int t = *a;
	*a = *b;
	*b = t;
}

__attribute__((noinline)) static int demo_partition(int *v, int n, compare_fn compare)
{
	int pivot = v[(n - 1) / 2], i = -1, j = n;
	for (;;) {
		while (compare(v[++i], pivot) < 0)
			;
		while (compare(v[--j], pivot) > 0)
			;
		if (i >= j)
			return j;
		swap(&v[i], &v[j]);
	}
}

__attribute__((noinline)) void demo_quicksort(int *v, int n, compare_fn compare)
{
	if (n < 2)
		return;
	int at = demo_partition(v, n, compare);
	demo_quicksort(v, at + 1, compare);
	demo_quicksort(v + at + 1, n - at - 1, compare);
}

__attribute__((noinline)) static uint32_t demo_mix(uint32_t h, uint32_t i)
{
	h ^= i;
	h *= 16777619u;
	return h ^ h >> 15;
}

__attribute__((noinline)) uint32_t demo_checksum(int rounds)
{
	uint32_t h = 2166136261u;
	for (int i = 0; i < rounds; i++)
		h = demo_mix(h, (uint32_t)i);
	return h;
}
