// Waits of known kinds and lengths. It writes a line per wait, as JSON, with what
// a trace of it must show:
//
//     Waits.exe SCENARIO[,SCENARIO...] [pause]
//
// With "pause" it waits for a line on its standard input before it begins, when
// its methods have been compiled: what attaches then has not seen that.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

public static class Waits
{
	[DllImport("waits")]
	static extern void waits_report(string scenario, string expect, long before, long after, int min, string frames);
	[DllImport("waits")]
	static extern void waits_number(string name, long n);
	[DllImport("waits")]
	static extern void waits_pause(string word);
	[DllImport("waits")]
	static extern void waits_through(Body body, int deep);

	static readonly object Gate = new object();
	static bool Silent;

	delegate void Body(); // waits.c calls it too

	[MethodImpl(MethodImplOptions.NoInlining)]
	static void Measure(string scenario, string expect, int min, string frames, Body body)
	{
		long before = Stopwatch.GetTimestamp();
		lock (Counted) Waiters[Begun++] = Thread.CurrentThread;
		body();
		long after = Stopwatch.GetTimestamp();
		if (Silent)
			return;
		waits_report(scenario, expect, before, after, min, frames);
	}

	static Thread Start(ThreadStart run)
	{
		Thread t = new Thread(run);
		t.Start();
		return t;
	}

	static int Length = 300, Begun;
	static readonly object Counted = new object(); // held so shortly that nobody waits for it

	static readonly Thread[] Waiters = new Thread[32]; // that have begun

	// AllBegun returns when so many threads wait, or have ended, however long the system took
	// to start them. Some spin before they wait, and sleep for a moment then: seen once, a
	// sleeper may be one of those.
	static void AllBegun(int n)
	{
		while (!Begin(n))
			Thread.Sleep(1);
		for (int seen = 0; seen < 20; Thread.Sleep(1))
			seen = Asleep(n) ? seen + 1 : 0;
	}

	static bool Asleep(int n)
	{
		for (int i = 0; i < n; i++)
			if ((Waiters[i].ThreadState & (System.Threading.ThreadState.WaitSleepJoin | System.Threading.ThreadState.Stopped)) == 0)
				return false;
		return true;
	}

	static bool Begin(int n)
	{
		lock (Counted) {
			if (Begun < n)
				return false;
			Begun = 0;
			return true;
		}
	}

	[MethodImpl(MethodImplOptions.NoInlining)] static void WaitMutex(Mutex m) { m.WaitOne(); m.ReleaseMutex(); }
	[MethodImpl(MethodImplOptions.NoInlining)] static void WaitEvent(WaitHandle h) { h.WaitOne(); GC.KeepAlive(h); }
	[MethodImpl(MethodImplOptions.NoInlining)] static void WaitTimeout(WaitHandle h) { h.WaitOne(Length); GC.KeepAlive(h); }
#if !NO_SEMAPHORE // the framework of .NET 10 for Windows that there is was trimmed
	[MethodImpl(MethodImplOptions.NoInlining)] static void WaitSemaphore(Semaphore s) { s.WaitOne(); GC.KeepAlive(s); }
#endif
	[MethodImpl(MethodImplOptions.NoInlining)] static void WaitJoin(Thread t) { t.Join(); GC.KeepAlive(t); }
	[MethodImpl(MethodImplOptions.NoInlining)] static void WaitMonitor(object o) { lock (o) Monitor.Wait(o); }
	[MethodImpl(MethodImplOptions.NoInlining)] static void WaitTask(Task t) { t.Wait(); GC.KeepAlive(t); }
	[MethodImpl(MethodImplOptions.NoInlining)] static void WaitSlim(SemaphoreSlim s) { s.Wait(); GC.KeepAlive(s); }
	[MethodImpl(MethodImplOptions.NoInlining)] static void Enter(object o) { lock (o) GC.KeepAlive(o); }
	[MethodImpl(MethodImplOptions.NoInlining)] static void Deep(WaitHandle h, int depth) { if (depth > 0) Deep(h, depth - 1); else WaitEvent(h); GC.KeepAlive(h); }
	[MethodImpl(MethodImplOptions.NoInlining)] static void Inner<T>(T unused, WaitHandle h) { WaitEvent(h); GC.KeepAlive(h); }
	[MethodImpl(MethodImplOptions.NoInlining)] static void Slumber() { Thread.Sleep(Length); }

	// After makes something happen when so many waits have lasted Length.
	static void After(int n, Body act)
	{
		AllBegun(n);
		Thread.Sleep(Length);
		act();
	}

	static void RunMutex()
	{
		Mutex m = new Mutex(true, null);
		Thread t = Start(delegate { Measure("mutex", "WaitHandleWait", Length - 30, "WaitMutex", delegate { WaitMutex(m); }); });
		After(1, m.ReleaseMutex);
		t.Join();
	}

	static void RunEvents()
	{
		AutoResetEvent a = new AutoResetEvent(false);
		ManualResetEvent m = new ManualResetEvent(false), never = new ManualResetEvent(false);
		Thread[] all = {
			Start(delegate { Measure("auto", "WaitHandleWait", Length - 30, "WaitEvent", delegate { WaitEvent(a); }); }),
			Start(delegate { Measure("manual", "WaitHandleWait", Length - 30, "WaitEvent", delegate { WaitEvent(m); }); }),
			Start(delegate { Measure("deep", "WaitHandleWait", Length - 30, "WaitEvent Deep Deep Deep Deep", delegate { Deep(m, 3); }); }),
			Start(delegate { Measure("generic", "WaitHandleWait", Length - 30, "WaitEvent Inner", delegate { Inner("x", m); }); }),
			Start(delegate { Measure("timeout", "WaitHandleWait", Length - 30, "WaitTimeout", delegate { WaitTimeout(never); }); }),
		};
		After(5, delegate { a.Set(); m.Set(); });
		foreach (Thread t in all)
			t.Join();
	}

	// Deeper is more than the hundred frames that an event of a trace has.
	static void RunDeeper()
	{
		ManualResetEvent m = new ManualResetEvent(false);
		Thread t = Start(delegate { Measure("deeper", "WaitHandleWait", Length - 30, "WaitEvent Deep", delegate { Deep(m, 150); }); });
		After(1, delegate { m.Set(); });
		t.Join();
	}

	static void RunSemaphore()
	{
		SemaphoreSlim slim = new SemaphoreSlim(0);
#if NO_SEMAPHORE
		AutoResetEvent s = new AutoResetEvent(false);
		Thread t = Start(delegate { Measure("auto", "WaitHandleWait", Length - 30, "WaitEvent", delegate { WaitEvent(s); }); });
#else
		Semaphore s = new Semaphore(0, 9);
		Thread t = Start(delegate { Measure("semaphore", "WaitHandleWait", Length - 30, "WaitSemaphore", delegate { WaitSemaphore(s); }); });
#endif
		Thread u = Start(delegate { Measure("slim", "WaitHandleWait", Length - 60, "WaitSlim", delegate { WaitSlim(slim); }); });
#if NO_SEMAPHORE
		After(2, delegate { s.Set(); slim.Release(); });
#else
		After(2, delegate { s.Release(1); slim.Release(); });
#endif
		t.Join();
		u.Join();
	}

	static void RunJoin()
	{
		Thread sleeper = Start(delegate { AllBegun(1); Slumber(); });
		Thread t = Start(delegate { Measure("join", "WaitHandleWait", Length - 60, "WaitJoin", delegate { WaitJoin(sleeper); }); });
		t.Join();
	}

	static void RunMonitor()
	{
		object o = new object();
		Thread t, u;
		lock (Gate) {
			t = Start(delegate { Measure("lock", "Contention", Length - 60, "Enter", delegate { Enter(Gate); }); });
			AllBegun(1);
			Thread.Sleep(Length);
		}
		t.Join();
		u = Start(delegate { Measure("pulse", "WaitHandleWait", Length - 60, "WaitMonitor", delegate { WaitMonitor(o); }); });
		After(1, delegate { lock (o) Monitor.PulseAll(o); });
		u.Join();
	}

	static void RunTask()
	{
		TaskCompletionSource<int> source = new TaskCompletionSource<int>();
		Thread t = Start(delegate { Measure("task", "WaitHandleWait", Length - 60, "WaitTask", delegate { WaitTask(source.Task); }); });
		After(1, delegate { source.SetResult(1); });
		t.Join();
	}

	// Callback waits in managed code that native code has called, which managed code had called.
	[MethodImpl(MethodImplOptions.NoInlining)]
	static void Callback(Body wait) { waits_through(wait, 3); GC.KeepAlive(wait); }

	static void RunCallback()
	{
		ManualResetEvent m = new ManualResetEvent(false);
		Thread t = Start(delegate { Measure("callback", "WaitHandleWait", Length - 60, "WaitEvent Callback", delegate { Callback(delegate { WaitEvent(m); }); }); });
		After(1, delegate { m.Set(); });
		t.Join();
	}

	// Interrupt ends a wait and a lock by an exception: they have no stop. What comes after
	// on the same thread is a wait like any other.
	[MethodImpl(MethodImplOptions.NoInlining)] static void Interrupted(Body wait) { try { wait(); } catch (ThreadInterruptedException) { } }

	static void RunInterrupt()
	{
		ManualResetEvent never = new ManualResetEvent(false);
		System.Reflection.MethodInfo interrupt = typeof(Thread).GetMethod("Interrupt"); // a trimmed framework has none
		if (interrupt == null)
			return;
		Thread t = Start(delegate {
			Measure("interrupted", "none", 0, "WaitEvent", delegate { Interrupted(delegate { WaitEvent(never); }); });
			Measure("after", "WaitHandleWait", Length - 30, "WaitTimeout", delegate { WaitTimeout(never); });
		});
		After(1, delegate { interrupt.Invoke(t, null); });
		AllBegun(1);
		t.Join();
	}

	// Silence is what must not show: nothing here reports a wait.
	static void RunSilence()
	{
		ManualResetEvent set = new ManualResetEvent(true);
		Thread t = Start(delegate {
			Measure("sleep", "none", 0, "Slumber", Slumber);
			Measure("uncontended", "none", 0, "Enter", delegate { Enter(new object()); });
			Measure("set", "none", 0, "WaitEvent", delegate { WaitEvent(set); });
		});
		t.Join();
		AllBegun(3);
	}

	static void RunMany()
	{
		ManualResetEvent go = new ManualResetEvent(false);
		Thread[] all = new Thread[24];
		for (int i = 0; i < all.Length; i++)
			all[i] = Start(delegate { Measure("many", "WaitHandleWait", Length - 200, "WaitEvent", delegate { WaitEvent(go); }); });
		After(24, delegate { go.Set(); });
		foreach (Thread t in all)
			t.Join();
	}

	// Turns is many short waits of two threads, one after the other.
	static void Turns(AutoResetEvent mine, AutoResetEvent other, long until, ref long longest)
	{
		for (long now = 0; now < until; other.Set()) {
			long before = Stopwatch.GetTimestamp();
			WaitEvent(mine);
			now = Stopwatch.GetTimestamp();
			longest = Math.Max(longest, now - before);
		}
	}

	// It says how long the longest took, in ticks.
	static void RunTurns()
	{
		AutoResetEvent a = new AutoResetEvent(true), b = new AutoResetEvent(false);
		long until = Stopwatch.GetTimestamp() + 2 * Stopwatch.Frequency, longest = 0, other = 0;
		Thread t = Start(delegate { Turns(a, b, until, ref longest); }), u = Start(delegate { Turns(b, a, until, ref other); });
		t.Join();
		u.Join();
		waits_number("longest", Math.Max(longest, other));
	}

	static object Keep;

	[MethodImpl(MethodImplOptions.NoInlining)] static void AllocateArrays(int n) { for (int i = 0; i < n; i++) Keep = new byte[1000]; }
	[MethodImpl(MethodImplOptions.NoInlining)] static void Throw() { throw new InvalidOperationException("odd"); }
	[MethodImpl(MethodImplOptions.NoInlining)]
	static void Exceptions(int n)
	{
		for (int i = 0; i < n; i++)
			try { Throw(); } catch (InvalidOperationException) { }
	}

	// Memory is what a program does besides waiting. It says how much: NAME NUMBER.
	static void RunMemory()
	{
		const int parts = 20, arrays = 1000, faults = 2;
		for (int i = 0; i < parts; i++) {
			AllocateArrays(arrays);
			Exceptions(faults);
			Thread.Sleep(50); // what watches must come to its turn
		}
		waits_number("AllocateArrays", (long)parts * arrays * (1000 + 24));
		waits_number("InvalidOperationException", parts * faults);
	}

	// The published example: an owner has a mutex for three seconds, and other
	// threads wait for it.
	[MethodImpl(MethodImplOptions.NoInlining)] static void Waiter(Mutex m) { m.WaitOne(); m.ReleaseMutex(); }

	static void RunExample()
	{
		Mutex m = new Mutex(false, null);
		ManualResetEvent has = new ManualResetEvent(false);
		Thread owner = Start(delegate { m.WaitOne(); has.Set(); Thread.Sleep(3000); m.ReleaseMutex(); });
		has.WaitOne();
		Thread[] all = new Thread[3];
		for (int i = 0; i < all.Length; i++)
			all[i] = Start(delegate { Measure("example", "WaitHandleWait", 2900, "Waiter", delegate { Waiter(m); }); });
		foreach (Thread t in all)
			t.Join();
		owner.Join();
		AllBegun(3);
	}

	// Open waits for ever, on a thread of its own: still open at any end.
	static void RunOpen()
	{
		ManualResetEvent never = new ManualResetEvent(false);
		Thread t = new Thread(delegate () { WaitEvent(never); });
		t.IsBackground = true;
		t.Start();
		Thread.Sleep(200);
	}

	static void Forever(ThreadStart run)
	{
		Thread t = new Thread(run);
		t.IsBackground = true;
		t.Start();
	}

	// Blocked is a thread for each way to wait, for ever.
	static void RunBlocked()
	{
		object gate = new object(), pulse = new object();
		ManualResetEvent never = new ManualResetEvent(false), has = new ManualResetEvent(false);
		Mutex owned = new Mutex(false, null);
		Thread holder = new Thread(delegate () { lock (gate) { owned.WaitOne(); has.Set(); WaitEvent(never); } });
		holder.IsBackground = true;
		holder.Start();
		has.WaitOne();
		Forever(delegate { WaitMutex(owned); });
		Forever(delegate { Deep(never, 3); });
#if !NO_SEMAPHORE
		Forever(delegate { WaitSemaphore(new Semaphore(0, 9)); });
#endif
		Forever(delegate { WaitSlim(new SemaphoreSlim(0)); });
		Forever(delegate { WaitJoin(holder); });
		Forever(delegate { WaitMonitor(pulse); });
		Forever(delegate { WaitTask(new TaskCompletionSource<int>().Task); });
		Forever(delegate { Inner("x", new AutoResetEvent(false)); });
		Forever(delegate { Enter(gate); });
		Forever(delegate { Callback(delegate { WaitEvent(never); }); });
		Thread.Sleep(300);
	}

	[DllImport("waits")]
	static extern void waits_take(int which);
	[DllImport("waits")]
	static extern void waits_meet(int which);

	static void Named(string name, ThreadStart run)
	{
		Thread t = new Thread(run);
		t.Name = name;
		t.IsBackground = true;
		t.Start();
	}

	// Deadlock is threads that wait for each other, by locks of every kind, and threads
	// that wait for one that holds a lock for ever. Their names say who waits for whom.
	static void RunDeadlock()
	{
		object a = new object(), b = new object(), c = new object(), d = new object();
		ManualResetEvent never = new ManualResetEvent(false), has = new ManualResetEvent(false);
		Named("managed-1", delegate { lock (a) { waits_meet(0); Enter(b); } });
		Named("managed-2", delegate { lock (b) { waits_meet(0); Enter(a); } });
		Named("native-1", delegate { waits_take(0); waits_meet(1); waits_take(1); });
		Named("native-2", delegate { waits_take(1); waits_meet(1); waits_take(0); });
		Named("mixed-1", delegate { lock (c) { waits_meet(2); waits_take(2); } });
		Named("mixed-2", delegate { waits_take(2); waits_meet(2); Enter(c); });
		Named("holder", delegate { lock (d) { has.Set(); WaitEvent(never); } });
		has.WaitOne();
		for (int i = 1; i < 4; i++)
			Named("waits", delegate { Enter(d); });
		Named("left", delegate { lock (d) { } });
		Named("sleeper", delegate { WaitMonitor(new object()); });
		Slim();
		Thread.Sleep(500);
		waits_pause("deadlocked");
	}

	// Slim is the same with a System.Threading.Lock, which this compiler does not know.
	static void Slim()
	{
		Type type = Type.GetType("System.Threading.Lock");
		System.Reflection.MethodInfo enter = type == null ? null : type.GetMethod("Enter");
		if (enter == null) // cut out of single-file programs
			return;
		object slim = Activator.CreateInstance(type);
		ManualResetEvent never = new ManualResetEvent(false), has = new ManualResetEvent(false);
		Named("slim-holder", delegate { enter.Invoke(slim, null); has.Set(); WaitEvent(never); });
		has.WaitOne();
		Named("slim-waits", delegate { enter.Invoke(slim, null); });
	}

	static void Run(string scenario)
	{
		switch (scenario) {
		case "mutex": RunMutex(); break;
		case "events": RunEvents(); break;
		case "deeper": RunDeeper(); break;
		case "semaphore": RunSemaphore(); break;
		case "join": RunJoin(); break;
		case "monitor": RunMonitor(); break;
		case "task": RunTask(); break;
		case "silence": RunSilence(); break;
		case "callback": RunCallback(); break;
		case "interrupt": RunInterrupt(); break;
		case "many": RunMany(); break;
		case "memory": RunMemory(); break;
		case "turns": RunTurns(); break;
		case "example": RunExample(); break;
		case "open": RunOpen(); break;
		case "blocked": RunBlocked(); break;
		case "deadlock": RunDeadlock(); break;
		default: throw new ArgumentException(scenario);
		}
	}

	public static int Main(string[] args)
	{
		string[] scenarios = args[0].Split(',');
		if (args.Length > 1 && args[1] == "pause") {
			Length = 1;
			Silent = true;
			foreach (string s in scenarios)
				if (s != "example" && s != "turns" && s != "open" && s != "blocked" && s != "deadlock")
					Run(s);
			Length = 300;
			Silent = false;
			waits_pause("ready");
		}
		foreach (string s in scenarios)
			Run(s);
		waits_pause(args.Length > 1 && args[1] == "pause" ? "done" : "");
		return 7;
	}
}
