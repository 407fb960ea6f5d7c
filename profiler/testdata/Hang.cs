// Programs that hang on purpose, one a mode, for seedwalk hang:
//
//     Hang.exe MODE
//
// It writes "ready" when all its threads have begun, and hangs within a moment of that.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

#if !NET10
namespace System.Runtime.InteropServices
{
	// Known to the runtime by its name: a call without it lets a collection begin.
	[AttributeUsage(AttributeTargets.Method)]
	sealed class SuppressGCTransitionAttribute : Attribute { }
}

#endif

// Counter lets threads wait until all have come; the core library alone has no such class.
sealed class Counter
{
	int left;
	public Counter(int n) { left = n; }
	public void AddCount() { Interlocked.Increment(ref left); }
	public void Signal() { Interlocked.Decrement(ref left); }
	public void Wait() { while (Volatile.Read(ref left) > 0) Thread.Sleep(1); }
}

// Static constructors that wait for work which needs their own type.
static class Joining
{
	public static object Value = new object();
	static Joining() { var t = new Thread(() => GC.KeepAlive(Value)) { Name = "needs" }; t.Start(); t.Join(); }
}

static class Tasking
{
	public static object Value = new object();
	static Tasking() { Task.Run(() => GC.KeepAlive(Value)).Wait(); }
}

static class One
{
	public static object Value = new object();
	static One() { Thread.Sleep(200); Task.Run(new Action(Hang.NeedsTwo)).Wait(); }
}

static class Two
{
	public static object Value = new object();
	static Two() { Thread.Sleep(200); Task.Run(new Action(Hang.NeedsOne)).Wait(); }
}

static class Locking
{
	public static object Value = new object();
	static Locking() { lock (Hang.A) { } }
}

public static class Hang
{
	[DllImport("libc.so.6")] static extern int pthread_mutex_lock(IntPtr m);
	[DllImport("libc.so.6")] static extern int read(int fd, IntPtr to, IntPtr n);
	[DllImport("libc.so.6")] static extern IntPtr recvmsg(int fd, IntPtr to, int flags);
	[DllImport("libc.so.6")] static extern int socketpair(int domain, int type, int protocol, int[] fds);
	[DllImport("libc.so.6")] static extern int dprintf(int fd, string line);
	[DllImport("libc.so.6")] static extern int getpid();
	[DllImport("libc.so.6")] static extern int pipe(int[] fds);
	[DllImport("libc.so.6", EntryPoint = "pthread_mutex_lock"), SuppressGCTransition] static extern int lock_at_once(IntPtr m);

	public static readonly object A = new object(); static readonly object B = new object();
	static readonly Counter Begun = new Counter(1);

	static void Start(string name, Action body)
	{
		Begun.AddCount();
		var t = new Thread(() => { Begun.Signal(); body(); });
		t.Name = name;
		t.IsBackground = true;
		t.Start();
	}

	static void Both(object first, object second, Counter held, int limit = -1)
	{
		lock (first)
		{
			held.Signal();
			held.Wait();
			bool taken = false;
			Monitor.TryEnter(second, limit, ref taken);
		}
	}

	static void TwoLocks(int limit)
	{
		var held = new Counter(2);
		Start("first", () => Both(A, B, held, limit));
		Start("second", () => Both(B, A, held, limit));
	}

	// The only mode that ends the process.
	static int Recurse(int n) { return Recurse(n + 1) + Recurse(n + 2) + n; }

	// Two threads wait for each other's end, or a thread holds the lock that the thread needs whose end it awaits.
	static void Joins(bool locks)
	{
		Thread first = null, second = null;
		var begun = new Counter(2);
		first = new Thread(() => {
			begun.Signal(); begun.Wait();
			if (locks) lock (A) { Begun.Signal(); second.Join(); } else { Begun.Signal(); second.Join(); }
		}) { Name = "first" };
		second = new Thread(() => {
			begun.Signal(); begun.Wait();
			Begun.Signal();
			if (locks) { Thread.Sleep(100); lock (A) { } } else first.Join();
		}) { Name = "second" };
		Begun.AddCount(); Begun.AddCount();
		first.Start(); second.Start();
	}

	static void Owner(Counter held, Counter end)
	{
		var owner = new Thread(() => { Monitor.Enter(A); held.Signal(); end.Wait(); });
		owner.Start();
		held.Wait();
	}

	// The owner of A ends without Monitor.Exit, while three threads wait for A or before they ask for it. With
	// collected, its Thread is collected before they ask. The three threads start before that: the runtime
	// could give a later thread the number of the collected one, and take it for the owner of A.
	static void Abandoned(bool waited, bool collected)
	{
		Counter end = new Counter(1), gate = new Counter(1);
		Owner(new Counter(1), end);
		for (int i = 0; i < 3; i++) Start("waiter", () => { gate.Wait(); lock (A) { } });
		if (!waited) { end.Signal(); Thread.Sleep(300); }
		for (int i = 0; collected && i < 5; i++) { GC.Collect(); GC.WaitForPendingFinalizers(); }
		gate.Signal();
		if (waited) { Thread.Sleep(300); end.Signal(); }
	}

	static IntPtr NewMutex()
	{
		IntPtr m = Marshal.AllocHGlobal(64);
		for (int i = 0; i < 64; i++) Marshal.WriteByte(m, i, 0);
		return m;
	}

	// first holds A and waits for the mutex; second holds the mutex and waits for B; third holds B and waits for A.
	static void Mutex()
	{
		var held = new Counter(3);
		IntPtr mutex = NewMutex();
		Start("first", () => { lock (A) { held.Signal(); held.Wait(); pthread_mutex_lock(mutex); } });
		Start("second", () => { pthread_mutex_lock(mutex); held.Signal(); held.Wait(); lock (B) { } });
		Start("third", () => Both(B, A, held));
	}

	// The writer waits for A, which the reader holds that waits for the writer.
	static void Writer()
	{
		var held = new Counter(2);
		var rw = new ReaderWriterLockSlim();
		Start("writer", () => { rw.EnterWriteLock(); held.Signal(); held.Wait(); lock (A) { } });
		Start("reader", () => { lock (A) { held.Signal(); held.Wait(); rw.EnterReadLock(); } });
	}

	// The reader waits for A, which the writer holds that waits for the last reader.
	static void Upgrade()
	{
		var held = new Counter(2);
		var rw = new ReaderWriterLockSlim();
		Start("reader", () => { rw.EnterReadLock(); held.Signal(); held.Wait(); lock (A) { } });
		Start("writer", () => { lock (A) { rw.EnterUpgradeableReadLock(); held.Signal(); held.Wait(); rw.EnterWriteLock(); } });
	}

	static async Task<int> Later() { await Task.Yield(); return 1; }

	// Every worker of the pool blocks. DOTNET_ThreadPool_ForceMinWorkerThreads and
	// DOTNET_ThreadPool_ForceMaxWorkerThreads bound the workers.
	static void Starve(Action block)
	{
		int n, ports;
		ThreadPool.GetMaxThreads(out n, out ports);
		var all = new Counter(n);
		for (int i = 0; i < n; i++)
			ThreadPool.QueueUserWorkItem(_ => { all.Signal(); all.Wait(); block(); }, null);
		all.Wait();
	}

	// The work that would set the event is queued behind the workers that wait for it.
	static void StarveByEvent()
	{
		var set = new ManualResetEventSlim();
		Starve(() => set.Wait());
		ThreadPool.QueueUserWorkItem(_ => set.Set(), null);
	}

	// The owner of A waits for a task with a token, and two threads wait for A.
	static void Token(int limit)
	{
		var held = new Counter(1);
		var source = new CancellationTokenSource(limit);
		var lost = new TaskCompletionSource<int>();
		Start("holder", () => { lock (A) { held.Signal(); lost.Task.Wait(source.Token); } });
		held.Wait();
		for (int i = 0; i < 2; i++) Start("waiter", () => { lock (A) { } });
	}

	static async Task After(Task task) { await task; }

	static async Task Await(Task gate, Func<Task> next) { await gate; await next(); }

	// The methods of two tasks await each other, and a thread waits for one of them. With any, something else
	// may end the circle.
	static void Circle(bool any)
	{
		var gate = new TaskCompletionSource<int>();
		Task lost = new TaskCompletionSource<int>().Task, first = null, second = null;
		first = Await(gate.Task, () => any ? Task.WhenAny(second, lost) : second);
		second = Await(gate.Task, () => first);
		gate.SetResult(1);
		Start("waiter", () => After(first).Wait());
	}

	static void All()
	{
		Task lost = new TaskCompletionSource<int>().Task;
		Start("waiter", () => Task.WhenAll(After(lost), Task.Delay(-1)).Wait());
	}

	public static void NeedsOne() { GC.KeepAlive(One.Value); }
	public static void NeedsTwo() { GC.KeepAlive(Two.Value); }

	// The owner of A waits for a task whose own code waits for A.
	static void TaskLock(Func<Action, Task> start)
	{
		var held = new Counter(1);
		Start("holder", () => { lock (A) { held.Signal(); start(() => { lock (A) { } }).Wait(); } });
		held.Wait();
	}

	static async Task Run(Action body) { await Task.Yield(); body(); }

	static async Task RunAny(Action body) { await Task.WhenAny(Run(body), After(new TaskCompletionSource<int>().Task)); }

	static async Task RunAll(Action body) { await Task.WhenAll(Run(body), After(new TaskCompletionSource<int>().Task)); }

	// A factory waits for a task that needs its Lazy.
	static void OfLazy()
	{
		Lazy<int> lazy = null;
		lazy = new Lazy<int>(() => Task.Run(() => lazy.Value).Result, LazyThreadSafetyMode.ExecutionAndPublication);
		Start("first", () => GC.KeepAlive(lazy.Value));
	}

	// The owner of A waits, with or without a limit, for the end of a thread that needs A.
	static void JoinLimit(int limit)
	{
		Start("holder", () => { lock (A) { var t = new Thread(() => { lock (A) { } }) { Name = "needs" }; t.Start(); t.Join(limit); } });
	}

	static void Mutexes(Mutex first, Mutex second)
	{
		var held = new Counter(2);
		Start("first", () => { first.WaitOne(); held.Signal(); held.Wait(); second.WaitOne(); });
		Start("second", () => { second.WaitOne(); held.Signal(); held.Wait(); first.WaitOne(); });
	}

	// The owner of a mutex waits for A, whose owner waits for the mutex, or for the mutex or something else.
	static void MutexLock(Action<Mutex> wait)
	{
		var held = new Counter(2);
		var mutex = new Mutex(false, null);
		Start("first", () => { mutex.WaitOne(); held.Signal(); held.Wait(); lock (A) { } });
		Start("second", () => { lock (A) { held.Signal(); held.Wait(); wait(mutex); } });
	}

	static void SemaphoreTwice()
	{
		var s = new SemaphoreSlim(1);
		Start("waiter", () => { s.Wait(); s.Wait(); });
	}

	static void Semaphores()
	{
		var held = new Counter(2);
		SemaphoreSlim a = new SemaphoreSlim(1), b = new SemaphoreSlim(1);
		Start("first", () => { a.Wait(); held.Signal(); held.Wait(); b.Wait(); });
		Start("second", () => { b.Wait(); held.Signal(); held.Wait(); a.Wait(); });
	}

	static async Task Twice(SemaphoreSlim s) { await s.WaitAsync(); await s.WaitAsync(); }

	static void SemaphoreAwait() { Start("waiter", () => Twice(new SemaphoreSlim(1)).Wait()); }

	static void Pulse() { Start("waiter", () => { lock (A) Monitor.Wait(A); }); }

	static void Lost()
	{
		var source = new TaskCompletionSource<int>();
		Start("waiter", () => source.Task.Wait());
	}

	static void Semaphore()
	{
		var s = new SemaphoreSlim(0);
		Start("waiter", () => s.Wait());
	}

	static void Held(Action<int[]> open, Action<int> wait)
	{
		var fds = new int[2];
		open(fds);
		var held = new Counter(1);
		Start("holder", () => { lock (A) { held.Signal(); wait(fds[0]); } });
		held.Wait();
		for (int i = 0; i < 3; i++) Start("waiter", () => { lock (A) { } });
	}

	// A thread in a call without a transition keeps every collection waiting.
	static void Collect(Action collect)
	{
		IntPtr mutex = NewMutex();
		pthread_mutex_lock(mutex);
		Start("native", () => lock_at_once(mutex));
		Start("collector", () => { Thread.Sleep(500); for (; ; ) collect(); });
	}

	static void Idle() { Start("sleeper", () => Thread.Sleep(-1)); }

	static void Busy()
	{
		Start("worker", () => { for (long n = 0; ; n++) lock (A) Thread.SpinWait(50000); });
		Start("other", () => { for (; ; ) { lock (A) Thread.SpinWait(50000); Thread.Sleep(1); } });
	}

	static void Main(string[] args)
	{
		var modes = new Dictionary<string, Action> {
			{ "two-locks", () => TwoLocks(-1) }, { "joins", () => Joins(false) }, { "join-lock", () => Joins(true) },
			{ "limit", () => TwoLocks(600000) }, { "overflow", () => Recurse(0) },
			{ "mutex", Mutex }, { "upgrade", Upgrade }, { "writer", Writer }, { "lost", Lost },
			{ "starve", () => Starve(() => Later().Wait()) }, { "starve-event", StarveByEvent },
			{ "all", All }, { "pulse", Pulse }, { "circle", () => Circle(false) }, { "circle-any", () => Circle(true) },
			{ "token", () => Token(600000) }, { "token-for-ever", () => Token(-1) },
			{ "semaphore", Semaphore }, { "held", () => Held(fds => pipe(fds), fd => read(fd, Marshal.AllocHGlobal(8), (IntPtr)8)) },
			{ "socket", () => Held(fds => socketpair(1, 1, 0, fds), fd => recvmsg(fd, NewMutex(), 0)) },
			{ "abandoned", () => Abandoned(true, false) }, { "abandoned-first", () => Abandoned(false, false) },
			{ "abandoned-collected", () => Abandoned(false, true) },
			{ "collect", () => Collect(GC.Collect) }, { "allocate", () => Collect(() => GC.KeepAlive(new byte[2000])) },
			{ "idle", Idle }, { "busy", Busy },
			{ "task-lock", () => TaskLock(Task.Run) }, { "async-lock", () => TaskLock(Run) }, { "all-lock", () => TaskLock(RunAll) },
			{ "any-lock", () => TaskLock(RunAny) },
			{ "own-task", () => { Task self = null; var begun = new Counter(1); self = Task.Run(() => { begun.Wait(); self.Wait(); }); begun.Signal(); } },
			{ "lazy", OfLazy }, { "join-limit", () => JoinLimit(600000) }, { "join-holder", () => JoinLimit(-1) },
			{ "type-join", () => Start("first", () => GC.KeepAlive(Joining.Value)) },
			{ "type-task", () => Start("first", () => GC.KeepAlive(Tasking.Value)) },
			{ "types", () => { Start("first", () => GC.KeepAlive(One.Value)); Start("second", () => GC.KeepAlive(Two.Value)); } },
			{ "type-lock", () => { var held = new Counter(1); Start("first", () => { lock (A) { held.Signal(); Thread.Sleep(100); GC.KeepAlive(Locking.Value); } });
				held.Wait(); Start("second", () => GC.KeepAlive(Locking.Value)); } },
			{ "mutexes", () => Mutexes(new Mutex(false, null), new Mutex(false, null)) },
			{ "named-mutexes", () => Mutexes(new Mutex(false, getpid().ToString()), new Mutex(false, (-getpid()).ToString())) },
			{ "mutex-lock", () => MutexLock(m => m.WaitOne()) }, { "mutex-limit", () => MutexLock(m => m.WaitOne(600000)) },
			{ "mutex-any", () => MutexLock(m => WaitHandle.WaitAny(new WaitHandle[] { new ManualResetEvent(false), m }, -1)) },
			{ "semaphore-twice", SemaphoreTwice }, { "semaphores", Semaphores }, { "semaphore-await", SemaphoreAwait },
		};
		modes[args[0]]();
		Begun.Signal();
		Begun.Wait();
		dprintf(1, "ready\n");
		read(0, Marshal.AllocHGlobal(8), (IntPtr)8);
	}
}
