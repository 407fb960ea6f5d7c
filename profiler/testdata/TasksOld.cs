// Pending chains that are known (Tasks.cs), for .NET 8, whose core library here is that of a trimmed program:
//
//     Tasks8 COUNT [still|churn]
//
// It is compiled against the core library of .NET 9, since the trimmed one lacks methods that no program calls.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

public static class App
{
	delegate void Body(int number);
	[DllImport("libc.so.6")] static extern int dprintf(int fd, string format, int n);
	[DllImport("libc.so.6")] static extern int sleep(int seconds);
	[DllImport("truth")] static extern void truth_threads(Body body, int n);

	static readonly List<object> Kept = new List<object>();
	static void Keep(object o) { lock (Kept) Kept.Add(o); }
	static Task<int> Source() { var s = new TaskCompletionSource<int>(); Keep(s); return s.Task; }

	static async Task<int> Net(Task<int> on) { return await on; }
	static async Task<int> Db(Task<int> on) { return 1 + await Net(on); }
	static async Task Handle(Task<int> on) { await Db(on); }
	static async Task Nap() { await Task.Delay(100000000, default(CancellationToken)); }
	static async Task Sleepy() { await Nap(); }
	static async Task Aside() { await Source().ConfigureAwait(false); }
	static async Task Either() { await Task.WhenAny((Task)Net(Source()), Net(Source())); }
	static async Task<T> Generic<T>(Task<T> on) { return await on; }
	static async Task OfGeneric() { await Generic(Source()); }
	static async Task Twin(Task shared) { await shared; }
	static void Shared()
	{
		Task one = Net(Source());
		Keep(Twin(one));
		Keep(Twin(one));
	}

	static async Task Passing(TaskCompletionSource<int> s, byte[] ballast) { await s.Task; GC.KeepAlive(ballast); }

	static void Say(int count, string chain) { dprintf(1, "%d ", count); dprintf(1, chain, 0); dprintf(1, "\n", 0); }

	static void Begin(int n)
	{
		for (int i = 0; i < n; i++)
		{
			Keep(Handle(Source()));
			Keep(Sleepy());
			Keep(Aside());
			Keep(Either());
			Keep(OfGeneric());
			Shared();
		}
		Say(n, "Task<int> <- App.Net <- App.Db <- App.Handle");
		Say(n, "Task.Delay <- App.Nap <- App.Sleepy");
		Say(n, "Task<int> <- App.Aside");
		Say(2 * n, "Task<int> <- App.Net <- Task.WhenAny <- App.Either");
		Say(n, "Task<int> <- App.Generic<int> <- App.OfGeneric");
		Say(2 * n, "Task<int> <- App.Net <- App.Twin");
		Say(3, "Task<int> <- App.Net <- App.Db <- App.Handle <- blocked thread");
	}

	static bool churn;

	// Threads 0 to 2 block on a task. Thread 3 leaves chains that are over, and garbage.
	static void Run(int number)
	{
		if (number < 3) Handle(Source()).GetAwaiter().GetResult();
		var live = new TaskCompletionSource<int>[1000];
		for (int i = 0; churn; i = (i + 1) % live.Length)
		{
			if (live[i] != null) live[i].TrySetResult(1);
			live[i] = new TaskCompletionSource<int>();
			Passing(live[i], new byte[1000]);
		}
		sleep(1000000);
	}

	public static void Main(string[] args)
	{
		int n = 0;
		foreach (char c in args[0]) n = 10 * n + (c - '0');
		churn = args.Length > 1 && args[1] == "churn";
		Begin(n);
		Body ready = k => { if (k == 4) { sleep(2); dprintf(1, "ready\n", 0); } Run(k); };
		truth_threads(ready, 5);
	}
}
