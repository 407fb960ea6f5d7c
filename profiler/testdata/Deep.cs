// Stacks of megabytes, whose frames a test can check: from Root on, each level is a generic method, a lambda, or a
// native function that calls back. A hash of the level and of the number of the descent chooses which one.
// Arguments: seconds, levels, and what the leaf does: run, wait, or turn (return at once, for the next descent).
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

public static unsafe class Deep
{
    static long until;
    static int levels, descent, result;
    static string leaf;

    static class Generic<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Call(int n, T value)
        {
            int r = Next(n - 1);
            GC.KeepAlive(value);
            return r;
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Lambda(int n)
    {
        Func<int> f = () => Next(n - 1) + 1;
        return f();
    }

    [DllImport("libc")]
    static extern void qsort(int* at, nint count, nint size, delegate* unmanaged[Cdecl]<int*, int*, int> compare);

    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
    static int Back(int* a, int* b)
    {
        result = Next(*a - 1);
        return 0;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Native(int n)
    {
        int* two = stackalloc int[2] { n, n };
        qsort(two, 2, 4, &Back);
        return result;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Next(int n)
    {
        if (n == 0)
            return Leaf();
        switch (((uint)n + ((uint)descent << 20)) * 2654435761 >> 27 & 3)
        {
            case 0: return Generic<string>.Call(n, "") + 1;
            case 1: return Generic<int>.Call(n, 1) + 1;
            case 2: return Lambda(n) + 1;
            default: return Native(n) + 1;
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Leaf()
    {
        int x = 1;
        while (leaf != "turn" && Stopwatch.GetTimestamp() < until)
            if (leaf == "wait")
                Thread.Sleep(100);
            else
                for (int i = 0; i < 1000; i++)
                    x += i * x;
        return x;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Root()
    {
        do
        {
            descent = (descent + 1) % 8;
            if (leaf != "turn")
                until = Stopwatch.GetTimestamp() + seconds * Stopwatch.Frequency;
            Next(levels);
        } while (Stopwatch.GetTimestamp() < until);
    }

    static long seconds;

    public static void Main(string[] args)
    {
        seconds = long.Parse(args[0]);
        levels = int.Parse(args[1]);
        leaf = args[2];
        until = Stopwatch.GetTimestamp() + seconds * Stopwatch.Frequency;
        var t = new Thread(Root, 64 << 20);
        t.Start();
        t.Join();
    }
}
