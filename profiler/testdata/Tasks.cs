// Programs whose pending chains of async methods are known, for seedwalk tasks:
//
//     Tasks.exe COUNT [still|churn [MEGABYTES]]
//
// Each kind of chain is begun COUNT times and stays pending. The program writes one line for
// each kind, "COUNT leaf <- method <- ...", then "ready". With churn, other chains begin and
// end, threads allocate, and the collector compacts the heap all the time. MEGABYTES of strings fill the heap besides.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

public static class App
{
	[DllImport("libc.so.6")] static extern int dprintf(int fd, string format, int n);

	static readonly List<TaskCompletionSource<int>> Sources = new List<TaskCompletionSource<int>>();
	static readonly List<Task> Roots = new List<Task>();
	static readonly SemaphoreSlim Gate = new SemaphoreSlim(0);
	static readonly CancellationTokenSource Cancel = new CancellationTokenSource();

	static Task<int> Source()
	{
		var s = new TaskCompletionSource<int>();
		lock (Sources) Sources.Add(s);
		return s.Task;
	}

	// Of a source: three methods deep.
	static async Task<int> Net(Task<int> on) { return await on; }
	static async Task<int> Db(Task<int> on) { return 1 + await Net(on); }
	static async Task Handle(Task<int> on) { await Db(on); }

	static async Task Nap() { await Task.Delay(100000000); }
	static async Task Sleepy() { await Nap(); }

	static async Task<int> Child(Task<int> on) { return await on; }
	static async Task Both() { await Task.WhenAll(Child(Source()), Child(Source())); }
	static async Task Leg(Task<int> on) { await on; }
	static async Task Pair() { await Task.WhenAll(Leg(Source()), Leg(Source())); }
	static async Task Either() { await Task.WhenAny(Child(Source()), Child(Source())); }

	static async Task Guarded() { await Gate.WaitAsync(); }
	static async Task Aside() { await Source().ConfigureAwait(false); }
	static async Task Offloaded() { await Task.Run(() => Handle(Source())); }
	static async Task After() { await Child(Source()).ContinueWith(t => t.Result + 1, TaskContinuationOptions.ExecuteSynchronously); }
	static async Task<T> Generic<T>(Task<T> on) { return await on; }
	static async void Forgotten() { await Generic(Source()); }

	static async ValueTask<int> Value(Task<int> on) { return await on; }
	static async Task OfValue() { await Value(Source()); }

	// A source of values that is no task, as sockets and channels have them.
	sealed class Signal : System.Threading.Tasks.Sources.IValueTaskSource
	{
		System.Threading.Tasks.Sources.ManualResetValueTaskSourceCore<int> core;
		public ValueTask Wait() { return new ValueTask(this, core.Version); }
		public void GetResult(short token) { core.GetResult(token); }
		public System.Threading.Tasks.Sources.ValueTaskSourceStatus GetStatus(short token) { return core.GetStatus(token); }
		public void OnCompleted(Action<object> continuation, object state, short token, System.Threading.Tasks.Sources.ValueTaskSourceOnCompletedFlags flags)
		{
			core.OnCompleted(continuation, state, token, flags);
		}
	}
	static readonly List<Signal> Signals = new List<Signal>();
	static async Task OfSignal()
	{
		var s = new Signal();
		lock (Signals) Signals.Add(s);
		await s.Wait();
	}

	// Two that wait for one.
	static async Task Twin(Task shared) { await shared; }
	static void Shared()
	{
		var one = Net(Source());
		Keep(Twin(one));
		Keep(Twin(one));
	}

	static readonly List<string> Ballast = new List<string>();
	static void Keep(Task t) { lock (Roots) Roots.Add(t); }

	static void Say(int count, string chain) { dprintf(1, "%d ", count); dprintf(1, chain, 0); dprintf(1, "\n", 0); }

	static void Begin(int n)
	{
		for (int i = 0; i < n; i++)
		{
			Keep(Handle(Source()));
			Keep(Sleepy());
			Keep(Both());
			Keep(Pair());
			Keep(Either());
			Keep(Guarded());
			Keep(Aside());
			Keep(Offloaded());
			Keep(After());
			Forgotten();
			Keep(OfValue());
			Keep(OfSignal());
			Shared();
		}
		Say(n, "Task<int> <- App.Net <- App.Db <- App.Handle");
		Say(n, "Task.Delay <- App.Nap <- App.Sleepy");
		Say(2 * n, "Task<int> <- App.Child <- Task.WhenAll <- App.Both");
		Say(2 * n, "Task<int> <- App.Leg <- Task.WhenAll <- App.Pair");
		Say(2 * n, "Task<int> <- App.Child <- Task.WhenAny <- App.Either");
		Say(n, "SemaphoreSlim.WaitAsync <- App.Guarded");
		Say(n, "Task<int> <- App.Aside");
		Say(n, "Task<int> <- App.Net <- App.Db <- App.Handle <- Task.Run <- App.Offloaded");
		Say(n, "Task<int> <- App.Child <- Task.ContinueWith <- App.After");
		Say(n, "Task<int> <- App.Generic<int> <- App.Forgotten");
		Say(n, "Task<int> <- App.Value <- App.OfValue");
		Say(n, "App.Signal <- App.OfSignal");
		Say(2 * n, "Task<int> <- App.Net <- App.Twin");
	}

	// Threads that block on a task.
	static int Blocked;
	static void Block(Task on)
	{
		var t = new Thread(() => { Interlocked.Increment(ref Blocked); on.Wait(); });
		t.IsBackground = true;
		t.Start();
	}

	// Work that ends, so that what it leaves in memory must not be shown.
	static async Task Passing(TaskCompletionSource<int> s, byte[] ballast) { await s.Task; GC.KeepAlive(ballast); }
	static async Task Dropped() { await new TaskCompletionSource<int>().Task; }
	static void Churn()
	{
		var random = new Random(7);
		var live = new Queue<TaskCompletionSource<int>>();
		for (int i = 0; ; i++)
		{
			var s = new TaskCompletionSource<int>();
			Passing(s, new byte[random.Next(2000)]);
			live.Enqueue(s);
			if (live.Count > 1000) live.Dequeue().SetResult(1);
			if (i % 5000 == 0) GC.Collect();
			if (i % 1000 == 0) Thread.Sleep(1);
		}
	}

	public static void Main(string[] args)
	{
		int n = 0;
		foreach (char c in args[0]) n = 10 * n + (c - '0');
		// Chains that are over, or that nothing reaches, before the others and between them.
		for (int i = 0; i < 1000; i++) { var s = new TaskCompletionSource<int>(); Keep(Passing(s, new byte[100])); s.SetResult(1); Dropped(); }
		Begin(n);
		int megabytes = 0;
		if (args.Length > 2) foreach (char c in args[2]) megabytes = 10 * megabytes + (c - '0');
		for (int i = 0; i < 10000 * megabytes; i++) Ballast.Add(new string('x', 39));
		for (int i = 0; i < 3; i++) Block(Handle(Source()));
		Task shared = Net(Source());
		for (int i = 0; i < 2; i++) Block(shared);
		while (Volatile.Read(ref Blocked) < 5) Thread.Sleep(1);
		Say(3, "Task<int> <- App.Net <- App.Db <- App.Handle <- blocked thread");
		Say(2, "Task<int> <- App.Net <- blocked thread");
		GC.Collect();
		Thread.Sleep(200);
		if (args.Length > 1 && args[1] == "churn")
			for (int i = 0; i < 2; i++) { var t = new Thread(Churn); t.IsBackground = true; t.Start(); }
		dprintf(1, "ready\n", 0);
		Thread.Sleep(-1);
	}
}
