// Everything that hurts a profiler, at once: garbage collections, hardware and
// software exceptions, threads that come and go, assemblies that load, P/Invoke
// callbacks. Its output says how much of a fixed amount of work was right, so
// it is the same with and without a profiler.
// Usage: Soak.exe SECONDS [SELF.exe]
using System;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Reflection.Emit;
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
            { "callbacks", Callbacks }, { "allocate", Allocate }, { "unload contexts", Unload },
            { "dying methods", Dying }, { "exceptions in callbacks", Throwing }, { "finalizers", Finalizers },
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
        var some = new Thread[4];
        for (int i = 0; i < some.Length; i++)
        {
            some[i] = new Thread(() => { Interlocked.Increment(ref ran); Thread.SpinWait(2000); });
            some[i].Start();
        }
        foreach (var t in some) t.Join();
        Check(ran == some.Length);
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

    public static int Target(int n)
    {
        int h = n;
        for (int i = 0; i < 100000; i++) h = (h ^ i) * 16777619;
        return h;
    }

    // A collectible context: its code is freed. mcs does not know the type.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Unload()
    {
        var type = Type.GetType("System.Runtime.Loader.AssemblyLoadContext, System.Private.CoreLib");
        var context = Activator.CreateInstance(type, new object[] { "soak", true });
        var load = type.GetMethod("LoadFromStream", new[] { typeof(Stream) });
        var assembly = (Assembly)load.Invoke(context, new object[] { new MemoryStream(self) });
        Check((int)assembly.GetType("Soak").GetMethod("Target").Invoke(null, new object[] { 3 }) == Target(3));
        type.GetMethod("Unload").Invoke(context, null);
        Thread.Sleep(5);
    }

    // Dynamic methods, each of which is garbage after its first call.
    static void Dying()
    {
        var m = new DynamicMethod("dying", typeof(int), new[] { typeof(int) }, typeof(Soak).Module, true);
        var il = m.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, typeof(Soak).GetMethod("Target"));
        il.Emit(OpCodes.Ret);
        Check(((Func<int, int>)m.CreateDelegate(typeof(Func<int, int>)))(5) == Target(5));
    }

    static void Throwing()
    {
        int caught = 0;
        Comparer compare = (a, b) =>
        {
            try { Touch(a == b ? null : "x"); }
            catch (NullReferenceException) { caught++; }
            return a.CompareTo(b);
        };
        var v = new int[50];
        for (int i = 0; i < v.Length; i++) v[i] = i * 7919 % 53;
        demo_quicksort(v, v.Length, compare);
        Check(caught > 0);
        GC.KeepAlive(compare);
    }

    class Finalized
    {
        ~Finalized() { Thread.SpinWait(100); }
    }

    static void Finalizers() { new Finalized(); Thread.Sleep(1); }

    static void Allocate()
    {
        var a = new object[100];
        for (int i = 0; i < a.Length; i++) a[i] = new byte[i];
        Check(a.Length == 100);
    }
}
