// Allocations and exceptions of known kinds, sizes and numbers, and locks that are
// taken by turns. It says what it did, a line each: NAME NUMBER.
//
//     Events.exe [pause]
//
// With "pause" it does all once, quietly, and waits for a line on its standard input.
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

public static class Events
{
	sealed class Node { public Node Next; public long A, B, C; }
	sealed class Fault : Exception { public Fault(string message) : base(message) { } }

	[DllImport("waits")]
	static extern void waits_number(string name, long n);
	[DllImport("waits")]
	static extern void waits_pause(string word);

	static object Keep;

	[MethodImpl(MethodImplOptions.NoInlining)] static void AllocateArrays(int n) { for (int i = 0; i < n; i++) Keep = new byte[1000]; }
	[MethodImpl(MethodImplOptions.NoInlining)] static void AllocateNodes(int n) { for (int i = 0; i < n; i++) Keep = new Node(); }
	[MethodImpl(MethodImplOptions.NoInlining)] static void AllocateLarge(int n) { for (int i = 0; i < n; i++) Keep = new double[125000]; }

	[MethodImpl(MethodImplOptions.NoInlining)] static void Throw(int i) { if (i % 2 == 0) throw new Fault("even"); throw new InvalidOperationException("odd"); }
	[MethodImpl(MethodImplOptions.NoInlining)]
	static void Exceptions(int n)
	{
		for (int i = 0; i < n; i++)
			try { Throw(i); } catch (Exception) { }
	}

	// All does a part after the other: what watches on a machine that is busy must come to
	// its turn meanwhile.
	static void All(int scale)
	{
		const int parts = 20;
		for (int i = 0; i < parts; i++) {
			Part(scale / parts);
			Thread.Sleep(80);
		}
	}

	[MethodImpl(MethodImplOptions.NoInlining)]
	static void Part(int scale)
	{
		AllocateArrays(200 * scale);
		AllocateNodes(5000 * scale);
		AllocateLarge(scale / 5);
		Thread t = new Thread(delegate () { Exceptions(scale); });
		t.Start();
		t.Join();
	}

	public static int Main(string[] args)
	{
		if (args.Length > 0 && args[0] == "pause") {
			All(40);
			waits_pause("ready");
		}
		const int scale = 200;
		All(scale);
		// An array has 16 bytes before its elements and one word for the type; a node two words and its fields.
		waits_number("AllocateArrays", 200L * scale * (1000 + 24));
		waits_number("AllocateNodes", 5000L * scale * (16 + 32));
		waits_number("AllocateLarge", scale / 5 * (1000000L + 24));
		waits_number("Fault", scale / 2);
		waits_number("InvalidOperationException", scale / 2);
		waits_pause(args.Length > 0 && args[0] == "pause" ? "done" : "");
		return 7;
	}
}
