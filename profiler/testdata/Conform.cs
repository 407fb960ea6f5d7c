// The situations in which conform.c makes its calls: threads that stand where a
// sampler looks at them, and one that goes through what callbacks tell of.
// Usage: Conform.exe [dead | detach | spin]
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

static class Conform
{
    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    delegate void Callback();

    [DllImport("conform")] static extern void conform_role(string role);
    [DllImport("conform")] static extern void conform_sleep();
    [DllImport("conform")] static extern void conform_end();
    [DllImport("conform")] static extern void conform_call(Callback f);
    [DllImport("conform")] static extern void conform_self();
    [DllImport("conform")] static extern void conform_sample(string caller);
    [DllImport("conform")] static extern void conform_busy();
    [DllImport("conform")] static extern void conform_collecting();
    [DllImport("conform")] static extern void conform_suspending();
    [DllImport("conform")] static extern void conform_arm(int on);

    static volatile bool over;
    static int ready, counter;
    static readonly object gate = new object();
    static readonly Callback sleeper = Sleep;
    static object kept;

    static void Role(string role)
    {
        conform_role(role);
        Interlocked.Increment(ref ready);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Sleep() { conform_sleep(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Spin() { while (!over) counter++; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Self() { conform_self(); }

    static void Spinner() { Role("spin"); Spin(); }
    static void Sleeper() { Role("sleep"); Sleep(); }
    static void Nested() { Role("nested"); conform_call(sleeper); }
    static void Collects() { Role("collects"); conform_collecting(); GC.Collect(); }
    static void Watches() { Role("watches"); conform_suspending(); }
    static void Waiter() { Role("wait"); lock (gate) { } }
    static void Finally()
    {
        try { try { throw new Exception(); } finally { Role("finally"); Sleep(); } }
        catch (Exception) { }
    }
    static void Filter()
    {
        try { throw new Exception(); } catch (Exception) when (Filtered()) { }
    }
    static bool Filtered() { Role("filter"); Sleep(); return true; }
    static void Catcher()
    {
        try { throw new Exception(); } catch (Exception) { Role("catch"); Sleep(); }
    }

    class Finalized { ~Finalized() { Role("idle"); } }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Drop() { new Finalized(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Throw()
    {
        try { throw new InvalidOperationException(); }
        finally { counter++; }
    }

    // What happens to one thread, one after the other.
    static void Events()
    {
        Role("self");
        Self();
        conform_arm(1); kept = new object(); conform_arm(0);
        conform_arm(1);
        try { Throw(); } catch (InvalidOperationException) { }
        conform_arm(0);
        conform_busy();
        conform_arm(1); GC.Collect(); conform_arm(0);
    }

    // Waits until the spinner runs again: after a suspension it is inside the runtime
    // until it gets a processor.
    static void Spins()
    {
        for (int before = Volatile.Read(ref counter); Volatile.Read(ref counter) == before;) Thread.Sleep(1);
    }

    static void Start(ThreadStart body)
    {
        int before = ready;
        var t = new Thread(body) { IsBackground = true };
        t.Start();
        while (Volatile.Read(ref ready) == before) Thread.Sleep(1);
    }

    static int Main(string[] args)
    {
        string mode = args.Length > 0 ? args[0] : "";
        if (mode == "dead")
        {
            var t = new Thread(() => Role("dead"));
            t.Start();
            t.Join();
            for (int i = 0; i < 5; i++) { GC.Collect(); Thread.Sleep(50); }
            conform_sample("dead");
            return 0;
        }
        if (mode == "detach")
        {
            Role("main");
            conform_sample("detaching");
            return 0;
        }
        if (mode == "spin")
        {
            Start(Spinner);
            conform_sample("trapped");
            over = true;
            return 0;
        }
        lock (gate)
        {
            Start(Spinner);
            Start(Sleeper);
            Start(Nested);
            Start(Waiter);
            Start(Finally);
            Start(Filter);
            Start(Catcher);
            Start(Collects);
            Start(Watches);
            for (int i = 0, before = ready; ready == before && i < 200; i++)
            {
                Drop();
                GC.Collect();
                GC.WaitForPendingFinalizers();
            }
            Thread.Sleep(200);
            var e = new Thread(Events);
            e.Start();
            e.Join();
            Thread.Sleep(300); // the collections have woken the finalizer
            conform_sample("sampler");
            conform_sample("suspended");
            Spins();
            conform_sample("held");
            conform_sample("crowded");
            conform_sample("moved");
        }
        over = true;
        conform_end();
        return 0;
    }
}
