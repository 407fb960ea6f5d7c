// What `make demo` samples: one thread per kind of work that a profiler meets.
// Usage: Demo.exe [SECONDS]
using System;
using System.Collections.Generic;
using System.Linq;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

static class Demo
{
    delegate int Comparer(int a, int b);

    [DllImport("demo")] static extern void demo_quicksort(int[] values, int count, Comparer compare);
    [DllImport("demo")] static extern uint demo_checksum(int rounds);

    static DateTime end;
    static readonly object gate = new object();
    static bool Running { get { return DateTime.UtcNow < end; } }

    static int Main(string[] args)
    {
        double seconds = args.Length > 0 ? double.Parse(args[0]) : 8;
        end = DateTime.UtcNow.AddSeconds(seconds);
        var work = new Dictionary<string, ThreadStart> {
            { "recursion", Recursion }, { "callbacks", Callbacks }, { "native", NativeLoop }, { "sleeper", Sleeper },
            { "lock A", Contend }, { "lock B", Contend }, { "allocation", Allocate }, { "exceptions", Exceptions },
            { "jit", Jit }, { "linq", Linq }, { "async", Async },
        };
        var threads = work.Select(w => new Thread(w.Value) { Name = w.Key }).ToList();
        foreach (var t in threads) t.Start();
        foreach (var t in threads) t.Join();
        Console.WriteLine("demo: " + threads.Count + " threads, fib(20) = " + Fibonacci(20) + ", checksum " + demo_checksum(1000));
        return 0;
    }

    static void Recursion() { while (Running) Fibonacci(24); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }

    // managed -> C -> managed: the C library's sort asks a delegate.
    static void Callbacks()
    {
        var random = new Random(1);
        Comparer compare = Compare;
        while (Running)
        {
            var values = new int[3000];
            for (int i = 0; i < values.Length; i++) values[i] = random.Next(1000);
            demo_quicksort(values, values.Length, compare);
        }
        GC.KeepAlive(compare);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Compare(int a, int b) { return a.CompareTo(b); }

    static void NativeLoop() { while (Running) demo_checksum(2000000); }

    static void Sleeper() { while (Running) Thread.Sleep(10); }

    static void Contend()
    {
        while (Running)
            lock (gate) HoldTheLock();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void HoldTheLock() { Thread.Sleep(3); }

    static void Allocate()
    {
        var kept = new List<byte[]>();
        while (Running)
        {
            kept.Add(new byte[1000]);
            if (kept.Count > 20000) kept.Clear();
        }
    }

    static void Exceptions()
    {
        while (Running)
        {
            try { Descend(8); }
            catch (InvalidOperationException) { }
            Thread.Sleep(1);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Descend(int depth)
    {
        if (depth == 0) throw new InvalidOperationException("bottom");
        try { Descend(depth - 1); }
        finally { Thread.SpinWait(10); }
    }

    // A new dynamic method each time: the JIT compiler works.
    static void Jit()
    {
        for (int i = 0; Running; i++)
        {
            var m = new DynamicMethod("Dynamic" + i, typeof(int), new[] { typeof(int) }, typeof(Demo).Module);
            var il = m.GetILGenerator();
            il.Emit(OpCodes.Ldarg_0);
            for (int k = 0; k < 200; k++)
            {
                il.Emit(OpCodes.Ldc_I4, k);
                il.Emit(OpCodes.Add);
            }
            il.Emit(OpCodes.Ret);
            var f = (Func<int, int>)m.CreateDelegate(typeof(Func<int, int>));
            f(i);
        }
    }

    static void Linq()
    {
        var numbers = Enumerable.Range(0, 2000).ToArray();
        while (Running)
            numbers.Where(n => n % 3 == 0).OrderBy(n => Weigh(n)).Select(n => n * 2).Sum();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Weigh(int n) { return n * 7919 % 104729; }

    static void Async() { AsyncWork().Wait(); }

    static async Task AsyncWork()
    {
        while (Running)
        {
            await Task.Delay(2);
            Fibonacci(18);
        }
    }
}
