// Threads that live for an instant, divisions by zero, null references, exceptions
// through frames with a finally, and collections, all at once: what the sample
// profilers must survive on every runtime. It is compiled against what was left of a
// single-file program's System.Private.CoreLib too (SingleFile.cs): no text is joined
// or parsed.
// Usage: Storm.exe [SECONDS, one digit]: until then, and until it had enough threads. The exit code is 42 if all results are right.
using System;
using System.Runtime.CompilerServices;
using System.Threading;

static class Storm
{
    const int Chains = 8, Least = 100;

    static int start, limit, made, wrong, zero, running = Chains;
    static object nothing;

    static bool Running { get { return Environment.TickCount - start < limit || Volatile.Read(ref made) < Least; } }

    static int Main(string[] args)
    {
        start = Environment.TickCount;
        limit = 3000;
        if (args.Length > 0) limit = (args[0][0] - '0') * 1000;
        for (int i = 0; i < Chains; i++) new Thread(new ThreadStart(Live)).Start();
        while (Volatile.Read(ref running) > 0)
        {
            GC.Collect();
            Thread.Sleep(10);
        }
        return wrong == 0 ? 42 : 1;
    }

    // Each thread starts the next: nobody waits for the end of one.
    static void Live()
    {
        bool right = true;
        switch (Interlocked.Increment(ref made) % 8)
        {
            case 0: right = Divides(); break;
            case 1: right = Follows(); break;
            case 2: right = Throws(); break;
            default: Thread.SpinWait(2000); break;
        }
        if (!right) Interlocked.Increment(ref wrong);
        if (Running) new Thread(new ThreadStart(Live)).Start();
        else Interlocked.Decrement(ref running);
    }

    static bool Divides()
    {
        try { return Divide(1, zero) < 0; }
        catch (DivideByZeroException) { return true; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Divide(int a, int b) { return a / b; }

    static bool Follows()
    {
        try { return Follow(nothing) == null; }
        catch (NullReferenceException) { return true; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static Type Follow(object o) { return o.GetType(); }

    static bool Throws()
    {
        int passed = 0;
        try { Descend(6, ref passed); }
        catch (InvalidOperationException) { passed++; }
        return passed == 8;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Descend(int depth, ref int passed)
    {
        try
        {
            if (depth == 0) throw new InvalidOperationException();
            Descend(depth - 1, ref passed);
        }
        finally { passed++; }
    }
}
