/* A program whose unwind data is small and has much in it: plain frames, a
 * frame pointer, alloca, many saved registers, a realigned stack, a noreturn
 * call at the end, a part of a function placed elsewhere. Nothing is linked. */
#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif
#define NOINLINE __attribute__((noinline))

volatile long sink;

NOINLINE EXPORT long leaf(long a) { return a * 3 + sink; }

NOINLINE EXPORT long saves(long a, long b, long c, long d) {
	long e = leaf(a), f = leaf(b), g = leaf(c), h = leaf(d);
	return leaf(e) + leaf(f) * e + leaf(g) * f + leaf(h) * g + a * b * c * d * h;
}

NOINLINE EXPORT long grows(long n) {
	volatile char *p = __builtin_alloca((__SIZE_TYPE__)n & 255);
	p[0] = (char)n;
	return leaf(p[0]) + p[0];
}

NOINLINE EXPORT long large(long n) {
	volatile long a[600];
	for (int i = 0; i < 600; i++)
		a[i] = n + i;
	return leaf(a[n & 511]) + a[3];
}

NOINLINE EXPORT long aligned(long n) {
	volatile long a[8] __attribute__((aligned(64)));
	a[n & 7] = n;
	return leaf((long)(__UINTPTR_TYPE__)a & 63) + a[1];
}

NOINLINE EXPORT double floats(double a, double b) {
	double c = (double)leaf((long)a), d = (double)leaf((long)b);
	return c * a + d * b + (double)leaf((long)(a * b)) * c;
}

__attribute__((noreturn, noinline, cold)) static void stop(void) {
	for (;;)
		sink++;
}

NOINLINE EXPORT long calls_last(long n) {
	if (leaf(n) == 7)
		stop();
	return leaf(n + 1);
}

#ifdef _WIN32
int DllMainCRTStartup(void *m, unsigned why, void *r) { (void)m, (void)r; return (int)why | 1; }
void ___chkstk_ms(void) {}
int _fltused;
#else
void _start(void) {
	sink = saves(1, 2, 3, 4) + grows(5) + large(6) + aligned(7) + (long)floats(8, 9) + calls_last(10);
	stop();
}
#endif
