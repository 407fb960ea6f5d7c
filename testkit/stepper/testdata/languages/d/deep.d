import core.stdc.stdarg, core.stdc.stdlib;

extern (C) int total(int n, ...) {
	va_list a;
	va_start(a, n);
	int s;
	foreach (i; 0 .. n) s += va_arg!int(a);
	va_end(a);
	return s;
}

int lazyly(int n, lazy int v) { return n ? v + lazyly(n - 1, v) : 0; }

int tail(int n, int s) { return n ? tail2(n - 1, s + n) : s; }
int tail2(int n, int s) { return n ? tail(n - 1, s ^ n) : s; }

int deep(int n, int delegate(int) f) {
	auto p = cast(int*) alloca(n * 8 + 16);
	p[0] = n;
	int mine(int k) {
		if (k % 4 == 3) throw new Exception("k");
		return p[0] + f(k) + total(3, k, n, p[0]);
	}
	try return n ? deep(n - 1, &mine) : mine(5) + lazyly(3, f(n));
	catch (Exception e) return 1;
	finally p[1] = f(2);
}

int main() {
	int s;
	foreach (i; 0 .. 8) s += deep(i, k => k + i) + tail(i, s);
	return s == -1;
}
