// What the Windows tests sample: one thread per kind of stack that a walk of a
// thread suspended anywhere must get right.
// Usage: Mix.exe SECONDS
using System;
using System.Collections.Generic;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

static unsafe class Mix
{
    delegate int Step(int depth);

    [DllImport("mix")] static extern uint mix_spin(int rounds);
    [DllImport("mix")] static extern void mix_sleep(int milliseconds);
    [DllImport("mix")] static extern int mix_down(int frames, Step next, int depth);

    static DateTime end;
    static readonly object gate = new object();
    static bool Running { get { return DateTime.UtcNow < end; } }

    static int Main(string[] args)
    {
        end = DateTime.UtcNow.AddSeconds(double.Parse(args[0]));
        var work = new Dictionary<string, ThreadStart> {
            { "spin", Spin }, { "native spin", NativeSpin }, { "native sleep", NativeSleep }, { "stackalloc", Stackalloc },
            { "nested", Nested }, { "allocation", Allocate }, { "jit", Jit }, { "exceptions", Exceptions },
            { "throwing recursion", ThrowingRecursion }, { "lock A", Contend }, { "lock B", Contend }, { "sleep", Sleeper },
            { "null references", NullReferences },
        };
        var threads = new List<Thread>();
        foreach (var w in work) threads.Add(new Thread(w.Value) { Name = w.Key });
        foreach (var t in threads) t.Start();
        foreach (var t in threads) t.Join();
        Console.WriteLine("mix: " + threads.Count + " threads");
        return 0;
    }

    static void Spin() { while (Running) Collatz(27, 200000); }

    // A loop without calls, under a recursion whose frames have no frame pointer.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static uint Collatz(uint n, int rounds)
    {
        if (n % 4 != 0) return Collatz(n + 1, rounds) + 1;
        for (int i = 0; i < rounds; i++) n = (n & 1) == 0 ? n / 2 : 3 * n + 1;
        return n;
    }

    static void NativeSpin() { while (Running) mix_spin(2000000); }

    static void NativeSleep() { while (Running) mix_sleep(5); }

    // The frame grows after the prolog, by another size each time.
    static void Stackalloc() { for (int i = 0; Running; i++) Grow(16 + i % 50 * 16); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Grow(int size)
    {
        byte* p = stackalloc byte[size];
        p[0] = 1;
        mix_sleep(2);
        p[size - 1] = p[0];
        mix_spin(20000);
    }

    // Managed, native, managed and so on, eight times, the last busy.
    static readonly Step down = Down;

    static void Nested() { while (Running) { Down(8); Thread.Sleep(1); } }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Down(int depth)
    {
        if (depth == 0) return (int)(Collatz(25, 20000) + mix_spin(20000));
        return mix_down(depth, down, depth - 1) + 1;
    }

    static void Allocate()
    {
        var kept = new List<byte[]>();
        while (Running)
        {
            kept.Add(new byte[1000]);
            if (kept.Count > 20000) { kept.Clear(); GC.Collect(); }
        }
    }

    // A new dynamic method each time: the JIT compiler works.
    static void Jit()
    {
        for (int i = 0; Running; i++)
        {
            var m = new DynamicMethod("Dynamic" + i, typeof(int), new[] { typeof(int) }, typeof(Mix).Module);
            var il = m.GetILGenerator();
            il.Emit(OpCodes.Ldarg_0);
            for (int k = 0; k < 200; k++)
            {
                il.Emit(OpCodes.Ldc_I4, k);
                il.Emit(OpCodes.Add);
            }
            il.Emit(OpCodes.Ret);
            ((Func<int, int>)m.CreateDelegate(typeof(Func<int, int>)))(i);
            if (i % 4 == 0) Thread.Sleep(1);
        }
    }

    // Every frame has a finally block, which runs while the frames above are gone
    // for the CLR and still on the stack.
    static void Exceptions()
    {
        while (Running)
        {
            try { Descend(8); }
            catch (InvalidOperationException) { Thread.SpinWait(10); }
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

    // Frames without a frame pointer are left by the exception, all of one method
    // and with one value in RBP.
    static void ThrowingRecursion()
    {
        while (Running)
        {
            try { Fall(20); }
            catch (InvalidOperationException) { }
            try { FallToFinally(10); }
            catch (InvalidOperationException) { }
            Thread.Sleep(1);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Fall(int depth)
    {
        if (depth == 0) throw new InvalidOperationException("bottom");
        return Fall(depth - 1) + depth;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int FallToFinally(int depth)
    {
        if (depth > 5) return FallToFinally(depth - 1) + depth;
        try { return Fall(5); }
        finally { Fall2(depth); }
    }

    // Thrown and caught while another exception is on its way.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Fall2(int depth)
    {
        try { Fall(depth); }
        catch (InvalidOperationException) { }
    }

    // Exceptions that the processor raises: at the bottom of six calls, and in a function
    // that calls none. At the one the stack pointer is a multiple of 16, at the other not:
    // what throws the exception aligns the stack where it must.
    class Node { public int Value = 1; }
    static Node nothing;
    static int caught;

    static void NullReferences()
    {
        while (Running)
        {
            try { caught += Touch(5); }
            catch (NullReferenceException) { caught++; }
            try { caught += Peek(nothing); }
            catch (NullReferenceException) { caught++; }
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Peek(Node node) { return node.Value; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Touch(int depth)
    {
        return depth == 0 ? nothing.Value : Touch(depth - 1) + depth;
    }

    static void Contend()
    {
        while (Running)
            lock (gate) HoldTheLock();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void HoldTheLock() { Thread.Sleep(3); }

    static void Sleeper() { while (Running) Thread.Sleep(10); }
}
