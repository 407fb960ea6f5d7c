// One thread per kind of work, as Demo.cs, for a runtime that exists only inside
// somebody's single-file program: it is compiled against that program's own
// System.Private.CoreLib, from which all was cut that the program does not use.
// So no text is joined or parsed, and no collection is used.
// Usage: SingleFile.exe [TENS OF SECONDS, one digit]
using System;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

static class SingleFile
{
    delegate int Comparer(int a, int b);

    [DllImport("demo")] static extern void demo_quicksort(int[] values, int count, Comparer compare);
    [DllImport("demo")] static extern uint demo_checksum(int rounds);
    [DllImport("kernel32", EntryPoint = "Sleep")] static extern void NativeSleep(uint ms);
    [DllImport("msvcrt")] static extern int puts(string text);

    static int start, limit;
    static readonly object gate = new object();
    static bool Running { get { return Environment.TickCount - start < limit; } }

    static int Main(string[] args)
    {
        start = Environment.TickCount;
        limit = 8000;
        if (args.Length > 0) limit = (args[0][0] - '0') * 10000;
        var work = new ThreadStart[] {
            Recursion, Callbacks, NativeLoop, NativeSleeper, Sleeper, Contend, Contend, Allocate, Exceptions, Handlers, NullReferences, Jit,
        };
        var threads = new Thread[work.Length];
        for (int i = 0; i < work.Length; i++)
        {
            threads[i] = new Thread(work[i]);
            threads[i].Start();
        }
        for (int i = 0; i < work.Length; i++) threads[i].Join();
        if (Fibonacci(20) != 6765) return 1;
        puts("singlefile: 12 threads");
        return 0;
    }

    static void Recursion() { while (Running) Fibonacci(24); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }

    // managed -> C -> managed: the C library's sort asks a delegate.
    static void Callbacks()
    {
        uint random = 1;
        Comparer compare = Compare;
        while (Running)
        {
            var values = new int[3000];
            for (int i = 0; i < values.Length; i++)
            {
                random = random * 1664525 + 1013904223;
                values[i] = (int)(random >> 20);
            }
            demo_quicksort(values, values.Length, compare);
        }
        GC.KeepAlive(compare);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Compare(int a, int b) { return a < b ? -1 : a > b ? 1 : 0; }

    static void NativeLoop() { while (Running) demo_checksum(2000000); }

    static void NativeSleeper() { while (Running) NativeSleep(5); }

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
        var kept = new byte[20000][];
        for (int i = 0; Running; i++)
        {
            kept[i % kept.Length] = new byte[1000];
            if (i % kept.Length == 0) GC.Collect();
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

    // A filter, a finally and a handler that take their time, each while the
    // exception's own frames are still on the stack.
    static void Handlers()
    {
        while (Running)
        {
            try { Raise(); }
            catch (Exception) when (Pause()) { NativeSleep(3); }
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Raise()
    {
        try { throw new Exception(); }
        finally { NativeSleep(3); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Pause() { NativeSleep(3); return true; }

    class Node { public int Value = 1; }
    static Node nothing = null;
    static int sink;

    // Exceptions that the processor raises, and that run code while they unwind.
    static void NullReferences()
    {
        while (Running)
        {
            try { sink += nothing.Value; }
            catch (NullReferenceException) when (Wanted()) { sink++; }
            Thread.Sleep(1);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Wanted() { return Fibonacci(8) == 21; }

    // A new dynamic method each time: the JIT compiler works.
    static void Jit()
    {
        for (int i = 0; Running; i++)
        {
            var m = new DynamicMethod("Dynamic", typeof(int), new[] { typeof(int) }, typeof(SingleFile).Module);
            var il = m.GetILGenerator();
            il.Emit(OpCodes.Ldarg_0);
            for (int k = 0; k < 200; k++)
            {
                il.Emit(OpCodes.Ldc_I4, k);
                il.Emit(OpCodes.Add);
            }
            il.Emit(OpCodes.Ret);
            var f = (Adder)m.CreateDelegate(typeof(Adder));
            f(i);
        }
    }

    delegate int Adder(int a);
}
