// Functions whose frames differ, for a compiler to describe: saved registers,
// early returns, an alloca, a realigned stack, a call that never returns, many
// arguments. Nothing runs them.
#include <stddef.h>

extern int use(void *, long, long, long, long, long, long, long);

int leaf(int a)
{
	return a * 3;
}

int early(int *p, int n)
{
	if (!p)
		return -1;
	for (int i = 0; i < n; i++)
		if (use(p + i, i, n, i, n, i, n, i))
			return i;
	return leaf(n);
}

int variable(size_t n)
{
	char *p = __builtin_alloca(n);
	return use(p, 1, 2, 3, 4, 5, 6, 7);
}

int realigned(size_t n)
{
	_Alignas(64) char block[128];
	char *p = __builtin_alloca(n);
	return use(block, 0, 0, 0, 0, 0, 0, 0) + use(p, 1, 2, 3, 4, 5, 6, 7);
}

int large(void)
{
	char block[1 << 16];
	return use(block, 0, 0, 0, 0, 0, 0, 0);
}

__attribute__((noreturn)) void never(void)
{
	for (;;)
		use(NULL, 0, 0, 0, 0, 0, 0, 0);
}

long busy(long *v, double *d)
{
	long a = v[0], b = v[1], c = v[2], e = v[3], f = v[4], g = v[5];
	double x = d[0], y = d[1];
	for (long i = 0; i < a; i++)
		if (use(v, a, b, c, e, f, g, i))
			b += (long)(x * (double)c + y);
	return a + b + c + e + f + g;
}
