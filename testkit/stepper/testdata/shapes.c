// Shapes of functions that unwinders get wrong: each is stepped through.
#include <stdarg.h>
#include <stdint.h>
#ifndef NOLIBC
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#else // an image that is mapped by hand: no library
static void *memset(void *p, int c, uint64_t n)
{
	for (volatile char *q = p; n; n--)
		*q++ = (char)c;
	return p;
}
void *memcpy(void *to, const void *from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		((volatile char *)to)[i] = ((const char *)from)[i];
	return to;
}
int _fltused;
#endif

#define NOINLINE __attribute__((noinline))
#define alloca __builtin_alloca

volatile uint64_t sink;

struct big { uint64_t v[9]; };
typedef uint64_t (*fn)(uint64_t);

static NOINLINE uint64_t leaf(uint64_t n) { return n * 3 + 1; }
NOINLINE uint64_t keeps(uint64_t n)
{
	uint64_t a = leaf(n), b = leaf(a), c = leaf(b), d = leaf(c), e = leaf(d), f = leaf(e);
	for (int i = 0; i < 2; i++)
		a ^= leaf(b ^ i), b += leaf(c), c ^= leaf(d), d += leaf(e), e ^= leaf(f), f += leaf(a);
	return a + b + c + d + e + f;
}
NOINLINE uint64_t varying(uint64_t n)
{
	char *p = alloca(n % 97 + 1);
	memset(p, (int)n, n % 97 + 1);
	uint64_t v[n % 13 + 1];
	for (unsigned i = 0; i < n % 13 + 1; i++)
		v[i] = leaf(i + (uint64_t)p[0]);
	return v[0] + keeps(v[n % 13]);
}
NOINLINE uint64_t aligned(uint64_t n)
{
	_Alignas(64) volatile char room[256];
	room[n & 255] = (char)n;
	return leaf((uint64_t)room[n & 127] + n) + ((uintptr_t)room & 63);
}
NOINLINE uint64_t aligned_varying(uint64_t n) // gcc: a dynamic realign argument pointer
{
	_Alignas(32) volatile char room[96];
	volatile char *p = alloca(n % 60 + 4);
	p[0] = room[n & 31] = (char)n;
	return keeps((uint64_t)p[0] + n) + (((uintptr_t)room & 31) == 0);
}
NOINLINE uint64_t huge(uint64_t n)
{
	volatile char room[140000];
	room[n % 140000] = (char)n;
	return leaf((uint64_t)room[n % 140000]);
}
NOINLINE uint64_t page(uint64_t n)
{
	volatile char room[5000];
	room[n % 5000] = (char)n;
	return keeps((uint64_t)room[n % 5000]);
}
NOINLINE uint64_t sum(int n, ...)
{
	va_list a;
	uint64_t s = 0;
	va_start(a, n);
	for (int i = 0; i < n; i++)
		s += i & 1 ? (uint64_t)va_arg(a, double) : va_arg(a, uint64_t);
	va_end(a);
	return leaf(s);
}
NOINLINE struct big by_value(struct big b, uint64_t n)
{
	b.v[n % 9] = keeps(b.v[0]);
	return b;
}
NOINLINE uint64_t tail(uint64_t n) { return n & 1 ? keeps(n) : aligned(n + 1); }
NOINLINE uint64_t shrink(uint64_t n, uint64_t *p)
{
	if (!p)
		return n;
	uint64_t a = leaf(*p), b = leaf(a), c = leaf(b);
	return a ^ b ^ leaf(c + n);
}
NOINLINE uint64_t recursive(uint64_t n) { return n ? recursive(n - 1) + leaf(n) : keeps(1); }
NOINLINE double floating(double x, uint64_t n)
{
	double v[8];
	for (int i = 0; i < 8; i++)
		v[i] = x * i + (double)leaf(n + (uint64_t)i);
	for (int i = 0; i < 8; i++)
		x += v[i] * v[7 - i];
	return x + (double)keeps(n);
}
#ifndef NOLIBC
static jmp_buf out;
NOINLINE uint64_t jumps(uint64_t n)
{
	if (n > 2)
		longjmp(out, 1);
	return jumps(n + 1) + leaf(n);
}
#endif
NOINLINE uint64_t through(fn f, uint64_t n) { return f(n) + leaf(n); }
NOINLINE uint64_t many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
	return keeps(a + b) + leaf(c + d) + leaf(e + f) + leaf(g + h);
}
NOINLINE uint64_t clobbers(uint64_t n)
{
#if defined(__aarch64__)
	__asm__ volatile("" : "+r"(n) : : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "cc", "memory");
#else
	__asm__ volatile("" : "+r"(n) : : "rbx", "r12", "r13", "r14", "r15", "cc", "memory");
#endif
	return leaf(n);
}
NOINLINE uint64_t branches(uint64_t n)
{
	switch (n % 7) {
	case 0: return leaf(n);
	case 1: return keeps(n);
	case 2: if (n > 4) return aligned(n); return leaf(2);
	case 3: return tail(n);
	case 4: for (uint64_t i = 0; i < 3; i++) n += leaf(i); return n;
	case 5: return shrink(n, &n);
	}
	return through(keeps, n);
}
#ifdef __x86_64__
NOINLINE __attribute__((ms_abi)) uint64_t microsoft(uint64_t a, uint64_t b)
{
	__asm__ volatile("" : "+r"(a) : : "rsi", "rdi", "rbx", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	return keeps(a + b);
}
#endif
#ifndef NOLIBC
static int compare(const void *a, const void *b) { return leaf(*(const uint64_t *)a) < leaf(*(const uint64_t *)b) ? -1 : 1; }
__attribute__((constructor)) static void before(void) { sink += keeps(7); }
__attribute__((destructor)) static void after(void) { sink += keeps(8); }
#endif

uint64_t everything(uint64_t n)
{
	struct big b = {{n, 2, 3, 4, 5, 6, 7, 8, 9}};
	uint64_t s = keeps(n) + varying(n) + varying(n + 40) + aligned(n) + aligned_varying(n) + huge(n) + page(n);
	s += sum(4, n, 2.0, n, 4.0) + by_value(b, n).v[n % 9] + tail(n) + tail(n + 1) + shrink(n, 0) + shrink(n, &s);
	s += recursive(n % 6 + 2) + (uint64_t)floating((double)n, n) + through(keeps, n) + through(tail, n);
	s += many(1, 2, 3, 4, 5, 6, 7, n) + clobbers(n);
	for (uint64_t i = 0; i < 7; i++)
		s += branches(i + n);
#ifndef NOLIBC
	if (!setjmp(out))
		s += jumps(0);
#endif
#ifdef __x86_64__
	s += microsoft(n, 3);
#endif
	return s;
}
#ifndef NOLIBC
int main(int argc, char **argv)
{
	uint64_t v[12];
	for (int i = 0; i < 12; i++)
		v[i] = leaf((uint64_t)i * 7919) % 101;
	qsort(v, 12, sizeof *v, compare);
	for (uint64_t i = 0; i < 3; i++)
		sink += everything(i + (uint64_t)argc) + v[i];
	char text[64];
	snprintf(text, sizeof text, "%s %d %.3f", argv[0] ? "program" : "", argc, (double)sink);
	sink += strlen(text) + (uint64_t)strtod("3.25", NULL);
	free(malloc(100000));
	return puts(text) < 0;
}
#endif
