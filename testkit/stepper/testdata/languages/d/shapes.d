import std.algorithm, std.conv, std.format, std.range;

class E : Exception { this(string s) { super(s); } }
interface I { int f(int n); }
class A : I { int f(int n) { return n + 1; } }
class B : I {
	int count;
	int f(int n) {
		scope (exit) count++;
		if (n % 5 == 0) throw new E("x");
		return n * 2;
	}
}

int deep(int n, I i) {
	if (n == 0) return 1;
	try { return deep(n - 1, i) + i.f(n); } catch (E e) { return n; }
}

int main() {
	I a = new A, b = new B;
	int s;
	foreach (i; 0 .. 5) {
		s += deep(i * 3, i & 1 ? a : b);
		s += iota(10).map!(x => x * i).filter!(x => x % 3 == 0).sum;
		auto t = format("%s %s", i, [1, 2, i]);
		s += t.length.to!int;
	}
	int[string] m;
	foreach (i; 0 .. 20) m[i.to!string] = i;
	foreach (k, v; m) s += v;
	return s == 0;
}
