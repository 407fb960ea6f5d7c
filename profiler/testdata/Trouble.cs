// Trouble MODE: three seconds of one kind of trouble.
using System;
using System.Diagnostics;
using System.Threading;

public static class Trouble
{
	static readonly object A = new object();
	static volatile bool done;

	static Thread Start(ThreadStart run) { var t = new Thread(run); t.Start(); return t; }

	// Each thread needs the lock that another one holds while it sleeps.
	static void Hold()
	{
		while (!done) lock (A) Thread.Sleep(10);
	}

	static void Convoy()
	{
		var all = new Thread[8];
		for (int i = 0; i < all.Length; i++) all[i] = Start(Hold);
		Thread.Sleep(3000);
		done = true;
		foreach (var t in all) t.Join();
	}

	// A thread waits for a flag without being blocked.
	static void Watch()
	{
		var spinner = new SpinWait();
		while (!done) {
			spinner.SpinOnce(-1);
			if (spinner.NextSpinWillYield) spinner.Reset(); // a busy machine gives a thread that yields no time
		}
	}

	static void Spin()
	{
		var all = new[] { Start(Watch), Start(Watch) };
		Thread.Sleep(3000);
		done = true;
		foreach (var t in all) t.Join();
	}

#if !NET10 // its core library is cut down
	// The pool has two threads and twelve items that block.
	static void Starve()
	{
		ThreadPool.SetMinThreads(2, 2);
		int left = 12;
		for (int i = 0; i < 12; i++)
			ThreadPool.QueueUserWorkItem(_ => { Thread.Sleep(1000); Interlocked.Decrement(ref left); });
		for (var clock = Stopwatch.StartNew(); Volatile.Read(ref left) > 0 && clock.ElapsedMilliseconds < 20000; ) Thread.Sleep(20);
	}
#endif

	static void Main(string[] args)
	{
		switch (args[0])
		{
			case "convoy": Convoy(); break;
			case "spin": Spin(); break;
#if !NET10
			case "starve": Starve(); break;
#endif
		}
		Console.WriteLine("done");
	}
}
