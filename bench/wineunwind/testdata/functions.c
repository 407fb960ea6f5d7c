/* Functions with prologs and epilogs of many kinds, for unwinding without ever
 * running: frames small and large, alloca, saved XMM registers, tail calls,
 * early returns, many arguments. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __declspec(dllexport)

EXPORT int many(int a, int b, int c, int d, int e, int f, int g, int h);
EXPORT volatile int sink;

EXPORT int empty(void) { return 0; }

EXPORT int tail(int a, int b) { return many(a, b, a, b, a, b, a, b); }

EXPORT int __attribute__((noinline)) few(int a, int b) { sink = a; return b; }

EXPORT int jump(int a, int b)
{
	if (a > b)
		return few(b, a);
	sink = few(a, b);
	return few(sink, a);
}

EXPORT int many(int a, int b, int c, int d, int e, int f, int g, int h)
{
	sink = a + b;
	int x = few(a, h), y = few(b, g), z = few(c, f), w = few(d, e);
	for (int i = 0; i < x; i++)
		z += few(y, i) * few(w, z);
	return few(x, y) + few(z, w) + few(x * z, y * w) + a + b + c + d + e + f + g + h;
}

EXPORT int large(const char *s)
{
	char b[100000];
	strcpy(b, s);
	sink = b[few(1, 2)];
	return (int)strlen(b);
}

EXPORT int middle(const char *s)
{
	char b[1000];
	strcpy(b, s);
	if (few(b[0], 1))
		return b[1];
	return (int)strlen(b);
}

EXPORT int dynamic(int n, const char *s)
{
	char *b = __builtin_alloca((size_t)n);
	strcpy(b, s);
	sink = few(b[0], n);
	return (int)strlen(b) + n;
}

EXPORT double floats(double a, double b, double c, double d)
{
	double x = sin(a), y = cos(b), z = tan(c), w = exp(d);
	for (int i = 0; i < 10; i++) {
		x += sin(y) * a;
		y += cos(z) * b;
		z += tan(w) * c;
		w += log(x) * d;
	}
	return x + y + z + w + a * b * c * d;
}

EXPORT int print(const char *format, ...)
{
	char b[256];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(b, sizeof b, format, args);
	va_end(args);
	return few(n, b[0]);
}

EXPORT int choose(int n, int a)
{
	switch (n) {
	case 0: return few(a, 1);
	case 1: return few(1, a) + a;
	case 2: return jump(a, 2);
	case 3: return middle("three") - a;
	case 4: return a;
	case 5: return few(few(a, a), a);
	}
	return dynamic(n, "none") + a;
}

EXPORT int recurse(int n) { return n < 2 ? few(n, n) : recurse(n - 1) + recurse(n - 2); }

EXPORT int indirect(int (*f)(int, int), int a) { return f(a, a + few(a, a)); }
