// A server whose requests know who awaits them, for seedwalk record --async:
//
//     Requests.exe CLIENTS SECONDS [activities]
//
// It ends after SECONDS of processor time, so that a busy machine gives as many samples as an idle one.
// A request goes down a path of async methods that it shares with other requests, and computes
// at some of its levels. The digits of the numbers of path and level are on the stack then, as methods
// Digits.N0 to N9: they are the truth. The program writes the async methods of each number, the
// innermost first, and "ready". With activities, each request has an Activity; the program writes
// its id, 00-TRACE-SPAN-00, and the number of its path.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
#if NET10 // an older compiler
using Value = System.Threading.Tasks.Task;
#else
using Value = System.Threading.Tasks.ValueTask;
#endif

public static class Digits
{
	[ThreadStatic] static uint seed;
	[MethodImpl(MethodImplOptions.NoInlining)] static int N0(int rest, int left) => 1 + Next(rest, left);
	[MethodImpl(MethodImplOptions.NoInlining)] static int N1(int rest, int left) => 1 + Next(rest, left);
	[MethodImpl(MethodImplOptions.NoInlining)] static int N2(int rest, int left) => 1 + Next(rest, left);
	[MethodImpl(MethodImplOptions.NoInlining)] static int N3(int rest, int left) => 1 + Next(rest, left);
	[MethodImpl(MethodImplOptions.NoInlining)] static int N4(int rest, int left) => 1 + Next(rest, left);
	[MethodImpl(MethodImplOptions.NoInlining)] static int N5(int rest, int left) => 1 + Next(rest, left);
	[MethodImpl(MethodImplOptions.NoInlining)] static int N6(int rest, int left) => 1 + Next(rest, left);
	[MethodImpl(MethodImplOptions.NoInlining)] static int N7(int rest, int left) => 1 + Next(rest, left);
	[MethodImpl(MethodImplOptions.NoInlining)] static int N8(int rest, int left) => 1 + Next(rest, left);
	[MethodImpl(MethodImplOptions.NoInlining)] static int N9(int rest, int left) => 1 + Next(rest, left);

	[MethodImpl(MethodImplOptions.NoInlining)] static int Burn()
	{
		if (seed == 0) seed = (uint)Environment.CurrentManagedThreadId;
		seed = seed * 1664525 + 1013904223;
		long end = Stopwatch.GetTimestamp() + Stopwatch.Frequency / 20000 + (long)(seed % 1000) * Stopwatch.Frequency / 500000;
		int n = 0;
		while (Stopwatch.GetTimestamp() < end) { n += new object().GetHashCode() & 1; for (int i = 0; i < 5000; i++) n ^= i * n; }
		return n;
	}

	// Next goes on with the lowest digit.
	public static int Next(int rest, int left)
	{
		if (left == 0) return Burn();
		switch (rest % 10)
		{
		case 0: return N0(rest / 10, left - 1);
		case 1: return N1(rest / 10, left - 1);
		case 2: return N2(rest / 10, left - 1);
		case 3: return N3(rest / 10, left - 1);
		case 4: return N4(rest / 10, left - 1);
		case 5: return N5(rest / 10, left - 1);
		case 6: return N6(rest / 10, left - 1);
		case 7: return N7(rest / 10, left - 1);
		case 8: return N8(rest / 10, left - 1);
		}
		return N9(rest / 10, left - 1);
	}
}

public static class App
{
	const int Paths = 100, Levels = 8, Length = 3;
	static readonly int[][] Path = new int[Paths][];
	static readonly string[] Names = { "Plain", "Valued", "OfValue", "Pooled", "Runs", "All" };
	static readonly SemaphoreSlim Gate = new SemaphoreSlim(4);
	static bool activities;

	// Hop suspends the caller in one of several ways, or not at all.
	static Task Hop(int n)
	{
		switch (n % 5)
		{
		case 0: return Task.CompletedTask;
		case 1: return Task.Delay(1);
		case 2: return Task.Run(() => { });
		case 3: return Gate.WaitAsync().ContinueWith(_ => Gate.Release());
		}
		return Task.Factory.StartNew(() => Thread.Yield(), CancellationToken.None, TaskCreationOptions.None, TaskScheduler.Default);
	}

	static void Work(int id, int level, int n) { if (n % 3 != 0 || level == Path[id].Length - 1) Digits.Next(id * Levels + level, Length); }

	static ValueTask Of(Task t) { return new ValueTask(t); }
	static ValueTask Of(ValueTask t) { return t; }

	static ValueTask Next(int id, int level, int n)
	{
		if (level == Path[id].Length) return new ValueTask();
		switch (Path[id][level])
		{
		case 0: return Of(Plain(id, level, n));
		case 1: return Of(Valued(id, level, n));
		case 2: return Of(OfValue(id, level, n));
		case 3: return Of(Pooled(id, level, n));
		case 4: return Of(Runs(id, level, n));
		}
		return Of(All(id, level, n));
	}

	static async Task Plain(int id, int level, int n)
	{
		await Hop(n);
		Work(id, level, n);
		await Next(id, level + 1, n / 2);
		Work(id, level, n / 3);
	}

	static async Task<int> Valued(int id, int level, int n)
	{
		Work(id, level, n / 2);
		await Next(id, level + 1, n / 3);
		await Hop(n);
		Work(id, level, n / 5);
		return n;
	}

	static async Value OfValue(int id, int level, int n)
	{
		await Hop(n);
		await Next(id, level + 1, n / 2);
		Work(id, level, n);
	}

#if !NET10
	[AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
#endif
	static async Value Pooled(int id, int level, int n)
	{
		await Hop(n);
		Work(id, level, n);
		await Next(id, level + 1, n / 3);
		Work(id, level, n / 2);
	}

	static async Task Runs(int id, int level, int n)
	{
		await Task.Run(() => Next(id, level + 1, n / 2).AsTask());
		Work(id, level, n);
	}

	static async Task All(int id, int level, int n)
	{
		await Task.WhenAll(Next(id, level + 1, n / 2).AsTask(), Hop(n));
		Work(id, level, n);
	}

	static async Task Serve(int client)
	{
		var random = new Random(client);
		for (;;)
		{
			int id = random.Next(Paths);
			using (Begin(id)) await Next(id, 0, random.Next(1 << 20));
		}
	}

	// Begin begins the Activity of a request, if those are wanted.
	static IDisposable Begin(int id)
	{
		if (!activities) return null;
		var activity = new Activity("request").Start();
		Say(activity.Id, id);
		return activity;
	}

	[DllImport("libc.so.6")] static extern void _exit(int code);
	[DllImport("libc.so.6")] static extern long clock();
	[DllImport("libc.so.6")] static extern int dprintf(int fd, string format, int n);
	static void Say(string text, int n) { dprintf(1, text.Insert(text.Length, " %d\n"), n); }

	static void Churn()
	{
		var kept = new object[1000];
		for (int i = 0; ; i++)
		{
			kept[i % kept.Length] = new byte[i % 5000];
			if (i % 20000 == 0) GC.Collect();
			if (i % 100 == 0) Thread.Sleep(1);
		}
	}

	static int Number(string s)
	{
		int n = 0;
		for (int i = 0; i < s.Length; i++) n = 10 * n + s[i] - '0';
		return n;
	}

	public static void Main(string[] args)
	{
		int clients = Number(args[0]), seconds = Number(args[1]);
		var random = new Random(1);
		for (int id = 0; id < Paths; id++)
		{
			Path[id] = new int[2 + random.Next(Levels - 2)];
			for (int i = 0; i < Path[id].Length; i++) Path[id][i] = random.Next(Names.Length);
			string chain = "App.Serve";
			for (int i = 0; i < Path[id].Length; i++)
			{
				chain = " <- ".Insert(4, chain).Insert(0, Names[Path[id][i]]).Insert(0, "App.");
				Say(chain, id * Levels + i);
			}
		}
		activities = args.Length > 2;
		var all = new List<Task>();
		for (int i = 0; i < clients; i++) { int client = i; all.Add(Task.Run(() => Serve(client))); }
		new Thread(Churn) { IsBackground = true }.Start();
		Say("ready", clients);
		for (int i = 0; i < 6000 && clock() < seconds * 1000000L; i++) Thread.Sleep(20);
		_exit(0);
	}
}
