// Programs that wait and work as healthy ones do, for seedwalk hang, which must accuse none:
//
//     Healthy.exe MODE
//
// Healthy.exe alone lists the modes. A program says "ready", and ends with its standard input.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.IO.Pipelines;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Threading;
using System.Threading.Channels;
using System.Threading.Tasks;

public static class Healthy
{
	static void Each(int n, Action body) { for (int i = 0; i < n; i++) new Thread(() => body()) { IsBackground = true }.Start(); }
	static void Loop(int n, Action step) => Each(n, () => { for (; ; ) step(); });
	static void Tasks(int n, Func<Task> step) { for (int i = 0; i < n; i++) Task.Run(async () => { for (; ; ) await step(); }); }
	static void Spin(double ms) { long end = Stopwatch.GetTimestamp() + (long)(ms * Stopwatch.Frequency / 1000); while (Stopwatch.GetTimestamp() < end) { } }
	static void Timed(object first, object second) { lock (first) { Thread.Sleep(10); if (Monitor.TryEnter(second, 1500)) Monitor.Exit(second); } }
	static void Try(Action<CancellationToken> wait) { try { using var s = new CancellationTokenSource(60000); wait(s.Token); } catch (OperationCanceledException) { } }
	static byte[] Garbage() => new byte[2000];

	static readonly object A = new(), B = new();
	static readonly Dictionary<string, Action> modes = new()
	{
		// Locks.
		["lock-over-task"] = () => Loop(3, () => { lock (A) Task.Delay(60000).Wait(); }),
		["lock-over-task-with-token"] = () => Loop(2, () => { lock (A) Try(t => new TaskCompletionSource().Task.Wait(t)); }),
		["lock-over-delay-with-token"] = () => Loop(2, () => { lock (A) Try(t => Task.Delay(-1, t).Wait()); }),
		["lock-over-event-with-token"] = () => Loop(2, () => { lock (A) Try(t => new ManualResetEventSlim().Wait(t)); }),
		["lock-over-take-with-token"] = () => { var c = new BlockingCollection<int>(); Loop(2, () => { lock (A) Try(t => c.Take(t)); }); },
		["lock-short"] = () => Loop(4, () => { lock (A) Spin(0.1); Thread.Sleep(1); }),
		["lock-long"] = () => Loop(2, () => { lock (A) Spin(20); Thread.Sleep(5); }),
		["lock-slow"] = () => Loop(3, () => { lock (A) Thread.Sleep(4000); }),
		["lock-over-receive"] = () => { var s = new UdpClient(0); s.Client.ReceiveTimeout = 60000; Loop(2, () => { lock (A) s.Client.Receive(Garbage()); }); },
		["lock-timeouts"] = () => { Loop(1, () => Timed(A, B)); Loop(1, () => Timed(B, A)); },
		["lock-over-task-of-pool"] = () => Loop(3, () => { lock (A) Task.Run(() => Thread.Sleep(60000)).Wait(); }),
		["lock-over-busy-task"] = () => Loop(3, () => { lock (A) Task.Run(() => Spin(10000)).Wait(); }),
		["lock-over-join"] = () => Loop(2, () => { lock (A) { var t = new Thread(() => Spin(10000)) { IsBackground = true }; t.Start(); t.Join(); } }),
		["lock-in-task"] = () => Loop(4, () => Task.Run(() => { lock (A) Spin(2); }).Wait()),
		["lock-in-awaited-task"] = () => Tasks(4, async () => { await Task.Run(() => { lock (A) Thread.Sleep(3); }); lock (A) Spin(1); }),
		["lock-in-order"] = () => Loop(3, () => { lock (A) lock (B) Spin(0.1); Thread.Sleep(1); }),
		["lock-of-short-threads"] = () => Loop(4, () => { var t = new Thread(() => { lock (A) Spin(5); }); t.Start(); t.Join(); }),
		["lock-left-behind"] = () => { var t = new Thread(() => Monitor.Enter(A)); t.Start(); t.Join(); Loop(2, () => { if (Monitor.TryEnter(A, 60000)) Monitor.Exit(A); }); },
		["monitor-pulse"] = () => { Loop(1, () => { lock (A) { Monitor.Wait(A); } }); Loop(1, () => { Thread.Sleep(3); lock (A) Monitor.PulseAll(A); }); },
		["spin-lock"] = () => { var s = new SpinLock(); Loop(2, () => { bool taken = false; s.Enter(ref taken); Spin(0.01); s.Exit(); Thread.Yield(); }); },
		["rw-readers"] = () => { var l = new ReaderWriterLockSlim(); Loop(4, () => { l.EnterReadLock(); Spin(0.1); l.ExitReadLock(); Thread.Sleep(1); }); },
		["rw-writer"] = () => { var l = new ReaderWriterLockSlim(); Loop(3, () => { l.EnterReadLock(); Spin(0.1); l.ExitReadLock(); Thread.Sleep(1); }); Loop(1, () => { l.EnterWriteLock(); Spin(1); l.ExitWriteLock(); Thread.Sleep(5); }); },
		["new-lock"] = () => { var l = new Lock(); Loop(4, () => { lock (l) Spin(0.1); Thread.Sleep(1); }); },
		["mutex"] = () => { var m = new Mutex(); Loop(3, () => { m.WaitOne(); Spin(0.1); m.ReleaseMutex(); Thread.Sleep(1); }); },
		["mutex-long"] = () => { var m = new Mutex(); Loop(3, () => { m.WaitOne(); Thread.Sleep(4000); m.ReleaseMutex(); }); },
		["mutex-of-several"] = () => { var m = new Mutex(); var e = new AutoResetEvent(false); Each(1, () => { m.WaitOne(); Thread.Sleep(-1); }); Loop(1, () => { lock (A) WaitHandle.WaitAny(new WaitHandle[] { m, e }, 60000); }); },
		["mutex-with-name"] = () => { var m = new Mutex(false, "seedwalk-healthy-" + Environment.ProcessId); Loop(3, () => { m.WaitOne(); Spin(0.1); m.ReleaseMutex(); Thread.Sleep(1); }); },
		["static-constructor"] = () => Each(3, () => GC.KeepAlive(Slow.Value)),
		["static-constructor-of-task"] = () => Each(3, () => GC.KeepAlive(SlowTask.Value)),
		["lazy-of-task"] = () => { var l = new Lazy<int>(() => { Task.Run(() => Spin(20000)).Wait(); return 1; }); Each(3, () => { GC.KeepAlive(l.Value); Thread.Sleep(-1); }); },
		["lazy"] = () => { var l = new Lazy<int>(() => { Spin(200); return 1; }); Each(3, () => { GC.KeepAlive(l.Value); Thread.Sleep(-1); }); },

		// Events, semaphores, barriers.
		["event-idle"] = () => { var e = new ManualResetEvent(false); Each(3, () => e.WaitOne()); },
		["event-slim"] = () => { var e = new ManualResetEventSlim(); Each(3, () => e.Wait()); },
		["event-ping-pong"] = () => { AutoResetEvent x = new(true), y = new(false); Loop(1, () => { x.WaitOne(); y.Set(); }); Loop(1, () => { y.WaitOne(); Spin(0.1); x.Set(); }); },
		["semaphore-throttle"] = () => { var s = new SemaphoreSlim(2); Loop(6, () => { s.Wait(); Thread.Sleep(2); s.Release(); }); },
		["semaphore-async"] = () => { var s = new SemaphoreSlim(1); Tasks(20, async () => { await s.WaitAsync(); await Task.Delay(1); s.Release(); }); },
		["barrier"] = () => { var b = new Barrier(3); Loop(3, () => { Spin(0.2); b.SignalAndWait(); }); },
		["countdown"] = () => Loop(1, () => { var c = new CountdownEvent(2); for (int i = 0; i < 2; i++) ThreadPool.QueueUserWorkItem(_ => { Spin(1); c.Signal(); }); c.Wait(); }),
		["join"] = () => Loop(1, () => { var t = new Thread(() => Thread.Sleep(20)); t.Start(); t.Join(); }),
		["wait-any"] = () => { var e = new WaitHandle[] { new AutoResetEvent(false), new AutoResetEvent(false) }; Each(2, () => WaitHandle.WaitAny(e)); },

		// Collections of producers and consumers.
		["blocking-collection"] = () => { var c = new BlockingCollection<int>(10); Each(2, () => { foreach (int i in c.GetConsumingEnumerable()) Spin(0.1); }); Loop(1, () => { c.Add(1); Thread.Sleep(1); }); },
		["blocking-full"] = () => { var c = new BlockingCollection<int>(1); Loop(2, () => c.Add(1)); Loop(1, () => { c.Take(); Thread.Sleep(2); }); },
		["channel-idle"] = () => { var c = Channel.CreateUnbounded<int>(); Tasks(5, async () => await c.Reader.ReadAsync()); },
		["channel-busy"] = () => { var c = Channel.CreateBounded<int>(4); Tasks(2, async () => await c.Writer.WriteAsync(1)); Tasks(2, async () => { await c.Reader.ReadAsync(); await Task.Delay(1); }); },
		["pipe"] = () => { var p = new Pipe(); Tasks(1, async () => { await p.Writer.WriteAsync(Garbage()); await Task.Delay(1); }); Tasks(1, async () => { var r = await p.Reader.ReadAsync(); p.Reader.AdvanceTo(r.Buffer.End); }); },

		// Tasks.
		["delays"] = () => Tasks(50, () => Task.Delay(10)),
		["delay-for-ever"] = () => Tasks(3, () => Task.Delay(-1)),
		["source-for-ever"] = () => Tasks(3, () => new TaskCompletionSource().Task),
		["main-blocks"] = () => Each(1, () => Task.Delay(-1).GetAwaiter().GetResult()),
		["main-blocks-on-server"] = () => Each(1, () => Serve().GetAwaiter().GetResult()),
		["sync-over-async"] = () => Loop(1, () => Sum(3).Wait()),
		["sync-over-async-in-pool"] = () => Tasks(1, () => { Task.Delay(2).Wait(); return Task.CompletedTask; }),
		["long-task"] = () => Task.Factory.StartNew(() => { for (; ; ) Spin(10); }, TaskCreationOptions.LongRunning),
		["task-of-threads"] = () => Tasks(4, () => Task.Run(() => Spin(1))),
		["when-all"] = () => Tasks(2, () => Task.WhenAll(Enumerable.Range(0, 10).Select(i => Task.Delay(i)))),
		["parallel"] = () => Loop(1, () => Parallel.For(0, 100, i => Spin(0.1))),
		["parallel-async"] = () => Tasks(1, () => Parallel.ForEachAsync(Enumerable.Range(0, 20), async (i, c) => await Task.Delay(1, c))),
		["plinq"] = () => Loop(1, () => GC.KeepAlive(Enumerable.Range(0, 10000).AsParallel().Select(i => Math.Sqrt(i)).Sum())),
		["queue-full"] = () => Loop(1, () => { for (int i = 0; i < 200; i++) ThreadPool.QueueUserWorkItem(_ => Spin(0.5)); Thread.Sleep(100); }),

		// Time, input, output, collections.
		["timer"] = () => { var t = new Timer(_ => Spin(1), null, 0, 5); Each(1, () => { Thread.Sleep(-1); GC.KeepAlive(t); }); },
		["timers-slow"] = () => { var t = new Timer(_ => Thread.Sleep(50), null, 0, 10); Each(1, () => { Thread.Sleep(-1); GC.KeepAlive(t); }); },
		["periodic"] = () => { var t = new PeriodicTimer(TimeSpan.FromMilliseconds(5)); Tasks(1, async () => await t.WaitForNextTickAsync()); },
		["socket-idle"] = () => Serve(),
		["socket-busy"] = () => { int port = 0; Serve(p => port = p); while (port == 0) Thread.Sleep(1); Loop(2, () => { using var c = new TcpClient("127.0.0.1", port); c.GetStream().WriteByte(1); c.GetStream().ReadByte(); }); },
		["socket-blocking"] = () => { var l = new TcpListener(IPAddress.Loopback, 0); l.Start(); Each(2, () => l.AcceptSocket()); },
		["file"] = () => { string f = Path.GetTempFileName(); Loop(1, () => { File.WriteAllBytes(f, Garbage()); GC.KeepAlive(File.ReadAllBytes(f)); }); },
		["child"] = () => Loop(1, () => { using var p = Process.Start("sleep", "0.1"); p.WaitForExit(); }),
		["allocate"] = () => Loop(3, () => GC.KeepAlive(Garbage())),
		["collect"] = () => { Loop(2, () => GC.KeepAlive(Garbage())); Loop(1, () => { GC.Collect(); Thread.Sleep(10); }); },
		["collect-beside-loops"] = () => { Each(2, () => { for (; ; ) { } }); Loop(1, () => GC.Collect()); },
		["finalizers"] = () => Loop(1, () => { new Finalized(); GC.Collect(); GC.WaitForPendingFinalizers(); }),
		["exceptions"] = () => Loop(2, () => { try { throw new InvalidOperationException(); } catch (InvalidOperationException) { Thread.Sleep(1); } }),
		["compute"] = () => Loop(3, () => Spin(100)),
	};

	static class Slow
	{
		public static readonly object Value = new();
		static Slow() => Thread.Sleep(60000);
	}

	static class SlowTask
	{
		public static readonly object Value = new();
		static SlowTask() => Task.Run(() => Spin(20000)).Wait();
	}

	sealed class Finalized { ~Finalized() => Spin(5); }

	static async Task<int> Sum(int depth)
	{
		await Task.Delay(1);
		return depth == 0 ? 1 : 1 + await Sum(depth - 1);
	}

	static async Task Serve(Action<int> listens = null)
	{
		var l = new TcpListener(IPAddress.Loopback, 0);
		l.Start();
		listens?.Invoke(((IPEndPoint)l.LocalEndpoint).Port);
		for (; ; )
		{
			using var c = await l.AcceptTcpClientAsync();
			var one = new byte[1];
			await c.GetStream().ReadAsync(one);
			await c.GetStream().WriteAsync(one);
		}
	}

	public static void Main(string[] args)
	{
		if (args.Length == 0)
		{
			foreach (string mode in modes.Keys) Console.WriteLine(mode);
			return;
		}
		modes[args[0]]();
		Thread.Sleep(100);
		Console.WriteLine("ready");
		Console.ReadLine();
	}
}
