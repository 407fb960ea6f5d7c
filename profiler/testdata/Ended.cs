// Native threads that run managed code and end, under collections and finalizers that take their
// time: the runtime calls ThreadDestroyed of such a thread late, on the finalizer's thread.
// Usage: Ended.exe SECONDS. The exit code is 42 if all calls came.
using System;
using System.Runtime.InteropServices;
using System.Threading;

static class Ended
{
    delegate void Body(int number);

    [DllImport("truth")] static extern void truth_threads(Body body, int n);
    [DllImport("truth")] static extern int truth_number(string text);

    static int calls;

    sealed class Slow { ~Slow() { Thread.Sleep(30); } }

    static int Main(string[] args)
    {
        int begin = Environment.TickCount, limit = truth_number(args[0]) * 1000, asked = 0;
        Body body = Work;
        new Thread(Spin) { IsBackground = true }.Start();
        while (Environment.TickCount - begin < limit)
        {
            truth_threads(body, 5);
            asked += 5;
            Leave();
            if (asked % 50 == 0) GC.Collect();
        }
        GC.KeepAlive(body);
        return Volatile.Read(ref calls) == asked ? 42 : 1;
    }

    static void Leave() { new Slow(); }

    static void Work(int number)
    {
        Thread.SpinWait(20000);
        Interlocked.Increment(ref calls);
    }

    static void Spin() { while (true) Thread.SpinWait(1000); }
}
