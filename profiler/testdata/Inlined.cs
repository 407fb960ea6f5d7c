// Inlined.exe MILLISECONDS: a program whose CPU time is in methods that the JIT compiler inlines.
// Its lines are known.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;

public static class Inlined
{
	static int[] data = new int[1000];

	[MethodImpl(MethodImplOptions.AggressiveInlining)]
	static int Sum(int n)
	{
		int x = 0;
		for (int i = 0; i < n; i++)
			x = x * 31 + data[i % 1000]; // line 17
		return x;
	}

	[MethodImpl(MethodImplOptions.AggressiveInlining)]
	static int Divide(int n)
	{
		int x = 1;
		for (int i = 1; i < n; i++)
			x += n / i % 7; // line 26
		return x;
	}

	[MethodImpl(MethodImplOptions.AggressiveInlining)]
	static int Middle(int n)
	{
		data[0]++;
		return Divide(n); // line 34
	}

	[MethodImpl(MethodImplOptions.NoInlining)]
	static int Once(int n)
	{
		return Sum(n); // line 40
	}

	[MethodImpl(MethodImplOptions.NoInlining)]
	static int Twice(int n)
	{
		data[1]++;
		return Middle(n); // line 47
	}

	[MethodImpl(MethodImplOptions.NoInlining)]
	static int None(int n)
	{
		int x = 0;
		for (int i = 0; i < n; i++)
			x = x * 17 + data[i % 1000]; // line 55
		return x;
	}

	// The compiler inlines the conversion of its argument, and keeps no position for the call itself.
	[MethodImpl(MethodImplOptions.NoInlining)]
	static int Taken(ReadOnlySpan<int> all)
	{
		int x = 0;
		for (int i = 0; i < 100; i++)
			foreach (int v in all)
				x = x * 13 + v;
		return x;
	}

	public static void Main(string[] args)
	{
		var process = Process.GetCurrentProcess();
		for (int x = 0; process.TotalProcessorTime.TotalMilliseconds < int.Parse(args[0]); process.Refresh())
			for (int i = 0; i < 20; i++)
				x += Once(100000) + Twice(100000) + None(100000) + Taken(data);
		Console.WriteLine("INLINED DONE");
	}
}
