/* Functions that realign their stack and leave it by a tail call: to a function of the
 * program, through the linkage table, and through a pointer. */
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned long sink;

NOINLINE unsigned long last(unsigned long a)
{
	sink += a;
	return a * 3;
}

unsigned long (*volatile pointer)(unsigned long) = last;

NOINLINE void fill(unsigned char *p, unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		p[i] = (unsigned char)(i + sink);
}

#define BODY                                                  \
	unsigned char room[192] __attribute__((aligned(64))); \
	unsigned long kept = a * b;                           \
	fill(room, sizeof room);                              \
	kept += room[a & 63] + g;                             \
	fill(room, b & 63);                                   \
	kept += room[b & 63];

NOINLINE unsigned long direct(unsigned long a, unsigned long b, long c, long d, long e, long f, long g)
{
	BODY
	return last(kept);
}

NOINLINE long linked(unsigned long a, unsigned long b, long c, long d, long e, long f, long g)
{
	BODY
	return labs((long)kept);
}

NOINLINE unsigned long indirect(unsigned long a, unsigned long b, long c, long d, long e, long f, long g)
{
	BODY
	return pointer(kept);
}

NOINLINE unsigned long either(unsigned long a, unsigned long b, long c, long d, long e, long f, long g)
{
	BODY
	if (kept & 1)
		return (unsigned long)strtol("12", 0, (int)(kept & 1) * 10);
	return atol("123") > 5 ? last(kept) : kept;
}

__attribute__((optimize("no-omit-frame-pointer")))
int main(void)
{
	unsigned long sum = 0;
	for (unsigned long i = 0; i < 6; i++) {
		sum += direct(i, 3, 1, 2, 3, 4, 5);
		sum += (unsigned long)linked(i, 5, 1, 2, 3, 4, 5);
		sum += indirect(i, 7, 1, 2, 3, 4, 5);
		sum += either(i, 2, 1, 2, 3, 4, 5);
	}
	return sum == 1;
}
