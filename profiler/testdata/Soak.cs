// Everything that hurts a profiler, at once: garbage collections, hardware and
// software exceptions, threads that come and go, assemblies that load, P/Invoke
// callbacks. Its output says how much of a fixed amount of work was right, so
// it is the same with and without a profiler.
// Usage: Soak.exe SECONDS [SELF.exe]
using System;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

static class Soak
{
    delegate int Comparer(int a, int b);
    [DllImport("demo")] static extern void demo_quicksort(int[] values, int count, Comparer compare);

    static DateTime end;
    static int wrong, zero;
    static byte[] self;
    static readonly Dictionary<string, long> done = new Dictionary<string, long>();
    static bool Running { get { return DateTime.UtcNow < end; } }

    static int Main(string[] args)
    {
        end = DateTime.UtcNow.AddSeconds(double.Parse(args[0]));
        self = File.ReadAllBytes(args[1]);
        var work = new Dictionary<string, Action> {
            { "collect", Collect }, { "null reference", NullReference }, { "divide by zero", DivideByZero },
            { "nested exceptions", Nested }, { "short threads", ShortThreads }, { "load assemblies", Load },
            { "callbacks", Callbacks }, { "allocate", Allocate },
        };
        var threads = new List<Thread>();
        foreach (var w in work)
        {
            var t = new Thread(() => Loop(w.Key, w.Value)) { Name = w.Key };
            t.Start();
            threads.Add(t);
        }
        foreach (var t in threads) t.Join();
        var names = new List<string>(done.Keys);
        names.Sort(StringComparer.Ordinal);
        foreach (var n in names) Console.Error.WriteLine("soak: " + n + ": " + done[n]);
        foreach (var n in names) Console.WriteLine(n + (done[n] > 0 ? ": worked" : ": did nothing"));
        Console.WriteLine("wrong results: " + wrong);
        return wrong == 0 ? 42 : 1;
    }

    static void Loop(string name, Action action)
    {
        long n = 0;
        while (Running) { action(); n++; }
        lock (done) done[name] = n;
    }

    static void Check(bool right) { if (!right) Interlocked.Increment(ref wrong); }

    static void Collect() { GC.Collect(); Thread.Sleep(2); }

    static void NullReference()
    {
        bool caught = false;
        try { Touch(null); } catch (NullReferenceException) { caught = true; }
        Check(caught);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Touch(string s) { return s.Length; }

    static void DivideByZero()
    {
        bool caught = false;
        try { Divide(1, zero); } catch (DivideByZeroException) { caught = true; }
        Check(caught);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Divide(int a, int b) { return a / b; }

    static void Nested()
    {
        int passed = 0;
        try { Descend(6, ref passed); } catch (InvalidOperationException) { passed++; }
        Check(passed == 8);
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

    static void ShortThreads()
    {
        int ran = 0;
        var t = new Thread(() => { Interlocked.Increment(ref ran); Thread.SpinWait(2000); });
        t.Start();
        t.Join();
        Check(ran == 1);
        Thread.Sleep(5);
    }

    static void Load()
    {
        var a = Assembly.Load(self);
        Check(a.GetType("Soak") != null);
        Thread.Sleep(50);
    }

    static void Callbacks()
    {
        int asked = 0;
        Comparer compare = (a, b) => { asked++; return a.CompareTo(b); };
        var v = new int[200];
        for (int i = 0; i < v.Length; i++) v[i] = (i * 7919) % 211;
        demo_quicksort(v, v.Length, compare);
        bool sorted = true;
        for (int i = 1; i < v.Length; i++) sorted &= v[i - 1] <= v[i];
        Check(sorted && asked > 0);
        GC.KeepAlive(compare);
    }

    static void Allocate()
    {
        var a = new object[100];
        for (int i = 0; i < a.Length; i++) a[i] = new byte[i];
        Check(a.Length == 100);
    }
}
