// Chains of async methods that only a current C# compiler makes, for seedwalk tasks:
//
//     Awaits.exe COUNT [spin]
//
// As Tasks.cs: "COUNT leaf <- method <- ..." for each kind, then "ready". With spin, two requests compute
// after an await, and a thread blocks on a third one.
using System;
using System.Collections.Generic;
using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Channels;
using System.Threading.Tasks;

public static class App
{
	static readonly List<object> Kept = new();
	static void Keep(object o) { lock (Kept) Kept.Add(o); }
	static Task<int> Source() { var s = new TaskCompletionSource<int>(); Keep(s); return s.Task; }

	[AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
	static async ValueTask<int> Pooled(Task<int> on) => await on + 1;
	[AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
	static async ValueTask<int> PooledTwice(Task<int> on) => await Pooled(on) + 1;
	static async Task OfPooled() => await PooledTwice(Source());

	static async IAsyncEnumerable<int> Numbers(Task<int> on)
	{
		yield return 1;
		yield return await on;
	}
	static async Task OfNumbers() { await foreach (int n in Numbers(Source())) GC.KeepAlive(n); }

	static async IAsyncEnumerable<int> Twice(IAsyncEnumerable<int> numbers) { await foreach (int n in numbers) yield return 2 * n; }
	static async Task OfTwice() { await foreach (int n in Twice(Numbers(Source()))) GC.KeepAlive(n); }

	static async Task Read() { var c = Channel.CreateUnbounded<int>(); Keep(c); await c.Reader.ReadAsync(); }
	static async Task ReadAll() { var c = Channel.CreateUnbounded<int>(); Keep(c); await foreach (int n in c.Reader.ReadAllAsync()) GC.KeepAlive(n); }
	static async Task Write() { var c = Channel.CreateBounded<int>(1); Keep(c); await c.Writer.WriteAsync(1); await c.Writer.WriteAsync(2); }

	static async Task OfPipe() { var p = new Pipe(); Keep(p); await p.Reader.ReadAsync(); }
	static async Task OfTimer() { using var t = new PeriodicTimer(TimeSpan.FromDays(1)); await t.WaitForNextTickAsync(); }

	// An object that refers to its own loop, and waits in it for something else.
	sealed class Server
	{
		public readonly Pipe Pipe = new();
		public Task Loop;
		public async Task Run() { await Pipe.Reader.ReadAsync(); GC.KeepAlive(this); }
	}
	static void Start() { var s = new Server(); s.Loop = s.Run(); Keep(s); }

	static async Task<int> Local()
	{
		async Task<int> inner(Task<int> on) => await on;
		Func<Task<int>, Task<int>> lambda = async on => await inner(on);
		return await lambda(Source());
	}
	static async Task AsTask() => await PooledTwice(Source()).AsTask();
	static async Task ReadAsTask() { var c = Channel.CreateUnbounded<int>(); Keep(c); await c.Reader.ReadAsync().AsTask(); }
	static async Task Unwrapped() { var s = new TaskCompletionSource(); var t = s.Task.ContinueWith(_ => Part(), TaskContinuationOptions.ExecuteSynchronously).Unwrap(); s.SetResult(); await t; }
	static async Task Ran() => await Task.Run(Part);
	static async Task Limited() => await Source().WaitAsync(TimeSpan.FromDays(1));
	static async Task Throws() { try { await Source(); } finally { GC.Collect(0); } }
	static async Task Twofold() { var a = Source(); var b = Source(); await Task.WhenAll(a, b); }
	static async Task<int> Part() => await Source();
	static IEnumerable<Task<int>> Parts(int n) { for (int i = 0; i < n; i++) yield return Part(); }
	static async Task AnyOfThree() => await Task.WhenAny(Part(), Part(), Part());
	static async Task AnyOfList() => await Task.WhenAny(Parts(3));
	static async Task AllOfMany() => await Task.WhenAll(Parts(9000));

	sealed class Own : INotifyCompletion
	{
		Action next;
		public Own GetAwaiter() => this;
		public bool IsCompleted => false;
		public void OnCompleted(Action then) => next = then;
		public void GetResult() => GC.KeepAlive(next);
	}
	static async Task OfOwn() { var own = new Own(); Keep(own); await own; }

	static async IAsyncEnumerable<int> Late([EnumeratorCancellation] CancellationToken end = default) { await Task.Delay(-1, end); yield return 1; }
	static async Task Cancelled() { await foreach (int n in Late().WithCancellation(Never.Token).ConfigureAwait(false)) GC.KeepAlive(n); }
	static readonly CancellationTokenSource Never = new();
	static readonly SemaphoreSlim Gate = new(0);
	static async Task Guarded() => await Gate.WaitAsync(Never.Token);
	static async Task Body() => await Source();
	static async Task Each() => await Parallel.ForEachAsync(new[] { 1 }, async (i, end) => await Body());
	static async void Void() => await Body();
	static async Task Down(int n) { if (n > 0) await Down(n - 1); else await Source(); }
	sealed class Disposed : IAsyncDisposable { public async ValueTask DisposeAsync() => await Source(); }
	static async Task Disposes() { await using var d = new Disposed(); GC.KeepAlive(d); }

	struct Point { public long X, Y; public Task<int> On; public readonly async Task<long> Sum() => await On + X; }
	static async Task OfStruct() => await new Point { X = 1, On = Source() }.Sum();

	// An interface's method that is generic over the result, with a captured context.
	interface IService<T> { Task<T> Handle(Task<T> on); }
	sealed class Service : IService<int>
	{
		static readonly AsyncLocal<string> Id = new();
		public async Task<int> Handle(Task<int> on)
		{
			Id.Value = "request";
			return await Caller(on);
		}
	}
	static async ValueTask<int> Caller(Task<int> on) => await on.ConfigureAwait(ConfigureAwaitOptions.ContinueOnCapturedContext);

	static volatile int spinning;
	static async Task<int> Spin()
	{
		await Task.Yield();
		Interlocked.Increment(ref spinning);
		for (int i = 0; ; i++) if (Burn(i) < 0) return i;
	}
	[MethodImpl(MethodImplOptions.NoInlining)] static double Burn(int i) => Math.Sqrt(i & 0xffff);
	static async Task<int> Middle() => 1 + await Spin();
	static async ValueTask<int> Outer() => 1 + await Middle();
	static async Task Request() => await Outer();

	static void Compute()
	{
		Keep(Request());
		Keep(Request());
		new Thread(() => OfPooled().Wait()) { IsBackground = true }.Start();
		while (spinning < 2) Thread.Sleep(1);
	}

	static void Begin(int n)
	{
		for (int i = 0; i < n; i++)
		{
			Keep(OfPooled());
			Keep(OfNumbers());
			Keep(OfTwice());
			Keep(Read());
			Keep(ReadAll());
			Keep(Write());
			Keep(OfPipe());
			Keep(OfTimer());
			Start();
			Keep(Local());
			Keep(AsTask());
			Keep(ReadAsTask());
			Keep(Unwrapped());
			Keep(Ran());
			Keep(Limited());
			Keep(Throws());
			Keep(Twofold());
			Keep(OfStruct());
			Keep(AnyOfThree());
			Keep(AnyOfList());
			Keep(OfOwn());
			Keep(Cancelled());
			Keep(Guarded());
			Keep(Each());
			Void();
			Keep(Down(2));
			Keep(Disposes());
			Keep(((IService<int>)new Service()).Handle(Source()));
		}
		Say(n, "Task<int> <- App.Pooled <- App.PooledTwice <- App.OfPooled");
		Say(n, "Task<int> <- App.Numbers <- App.OfNumbers");
		Say(n, "Task<int> <- App.Numbers <- App.Twice <- App.OfTwice");
		Say(n, "AsyncOperation<int> <- App.Read");
		Say(n, "AsyncOperation<bool> <- System.Threading.Channels.ChannelReader<int>.ReadAllAsync <- App.ReadAll");
		Say(n, "VoidAsyncOperationWithData<int> <- App.Write");
		Say(n, "Pipe.DefaultPipeReader <- App.OfPipe");
		Say(n, "PeriodicTimer.State <- App.OfTimer");
		Say(n, "Pipe.DefaultPipeReader <- App.Server.Run");
		Say(n, "Task<int> <- App.Local.inner <- App.Local (async lambda 1) <- App.Local");
		Say(n, "Task<int> <- App.Pooled <- App.PooledTwice <- ValueTask.AsTask <- App.AsTask");
		Say(n, "AsyncOperation<int> <- ValueTask.AsTask <- App.ReadAsTask");
		Say(n, "Task<int> <- App.Part <- Task.Unwrap <- App.Unwrapped");
		Say(n, "Task<int> <- App.Part <- Task.Run <- App.Ran");
		Say(n, "Task<int> <- Task.WaitAsync <- App.Limited");
		Say(n, "Task<int> <- App.Throws");
		Say(2 * n, "Task<int> <- Task.WhenAll <- App.Twofold");
		Say(n, "Task<int> <- App.Point.Sum <- App.OfStruct");
		Say(n, "Task<int> <- App.Caller <- App.Service.Handle");
		Keep(AllOfMany());
		Say(3 * n, "Task<int> <- App.Part <- Task.WhenAny <- App.AnyOfThree");
		Say(3 * n, "Task<int> <- App.Part <- Task.WhenAny <- App.AnyOfList");
		Say(9000, "Task<int> <- App.Part <- Task.WhenAll <- App.AllOfMany");
		Say(n, "App.Own <- App.OfOwn");
		Say(n, "Task.Delay <- App.Late <- App.Cancelled");
		Say(n, "SemaphoreSlim.WaitAsync <- Task.WaitAsync <- System.Threading.SemaphoreSlim.WaitUntilCountOrTimeoutAsync <- App.Guarded");
		Say(n, "Task<int> <- App.Body <- App.Each (async lambda) <- System.Threading.Tasks.Parallel.ForEachAsync (async lambda)");
		Say(n, "Task <- App.Each");
		Say(n, "Task<int> <- App.Body <- App.Void");
		Say(n, "Task<int> <- App.Down <- App.Down <- App.Down");
		Say(n, "Task<int> <- App.Disposed.DisposeAsync <- App.Disposes");
	}

	static void Say(int count, string chain) => Console.WriteLine($"{count} {chain}");

	public static void Main(string[] args)
	{
		Begin(int.Parse(args[0]));
		GC.Collect();
		if (args.Length > 1) Compute();
		Thread.Sleep(200);
		Console.WriteLine("ready");
		Thread.Sleep(-1);
	}
}
