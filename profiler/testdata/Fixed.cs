// Fixed.exe WORK SLOW: a program whose work does not depend on time. It does WORK rounds of eight kinds of
// work. SLOW percent more of Divide is a regression.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Text;

static class Fixed
{
	[MethodImpl(MethodImplOptions.NoInlining)]
	static int Count(int n) { int x = n; for (int i = 0; i < n; i++) x = x * 31 + i; return x; }

	[MethodImpl(MethodImplOptions.NoInlining)]
	static double Root(int n) { double x = 0; for (int i = 0; i < n; i++) x += Math.Sqrt(i + x); return x; }

	[MethodImpl(MethodImplOptions.NoInlining)]
	static int Walk(int[] all) { int x = 0; for (int i = 0; i < all.Length; i++) x = all[(x & 1023) + i & 4095] + i; return x; }

	[MethodImpl(MethodImplOptions.NoInlining)]
	static int Divide(int n) { int x = 1; for (int i = 1; i < n; i++) x += n / i % 7; return x; }

	[MethodImpl(MethodImplOptions.NoInlining)]
	static int Text(int n) { var b = new StringBuilder(); for (int i = 0; i < n; i++) b.Append(i); return b.Length; }

	[MethodImpl(MethodImplOptions.NoInlining)]
	static int Table(int n) { var d = new Dictionary<int, int>(); for (int i = 0; i < n; i++) d[i * 7919 % 1000] = i; return d.Count; }

	[MethodImpl(MethodImplOptions.NoInlining)]
	static int Query(int n) { return Enumerable.Range(0, n).Where(i => i % 3 == 0).Select(i => i * 2).Sum(); }

	[MethodImpl(MethodImplOptions.NoInlining)]
	static int Sorted(int n) { return Enumerable.Range(0, n).OrderBy(i => i * 7919 % 1009).First(); }

	static void Main(string[] args)
	{
		int work = int.Parse(args[0]), slow = int.Parse(args[1]);
		var all = new int[4096];
		double x = 0;
		for (int i = 0; i < work; i++)
			x += Count(20000) + Root(5000) + Walk(all) + Divide(20000 + 200 * slow) + Text(1000) + Table(1500) + Query(4000) + Sorted(600);
		Console.WriteLine(x != 0 ? "FIXED DONE" : "nothing");
	}
}
