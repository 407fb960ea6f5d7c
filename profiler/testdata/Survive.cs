// A program that is easily hurt: it sleeps in native code, blocks signals, runs on
// fibres, forks, collects, throws, compiles, loads and unloads.
// With "go", a library of Go is in it too, and nothing that cannot live with one:
// .NET itself does not survive hardware exceptions beside it. With "storm" it collects
// every 5 ms besides.
// Usage: Survive.exe SECONDS [exec|go|storm]
using System;
using System.Collections.Generic;
using System.Linq.Expressions;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.InteropServices;
using System.Threading;

static class Survive
{
    delegate void Call(int i);
    [DllImport("survive")] static extern void survive_sleep(int times, int milliseconds);
    [DllImport("survive")] static extern int survive_interrupted();
    [DllImport("survive")] static extern int survive_slept();
    [DllImport("survive")] static extern void survive_blocked(int rounds, Call call);
    [DllImport("survive")] static extern void survive_fibres(int rounds);
    [DllImport("survive")] static extern int survive_fork(int times);
    [DllImport("survive")] static extern int survive_exec();

    [DllImport("golib")] static extern long golib_spin(long rounds);

    static DateTime end;
    static volatile object keep;
    static int bad, caught, made, back, unloaded;
    static bool Running { get { return DateTime.UtcNow < end; } }

    static int Main(string[] args)
    {
        end = DateTime.UtcNow.AddSeconds(double.Parse(args[0]));
        var work = new List<ThreadStart> { Sleeps, Blocked, Fibres, Forks, Collect, Throw, Hardware, Jit, Churn, Allocate, Unload };
        bool storm = args.Length > 1 && args[1] == "storm", go = storm || args.Length > 1 && args[1] == "go";
        if (go) work = new List<ThreadStart> { Sleeps, Seldom, Go, Go };
        if (storm) work.Add(Collect);
        var threads = new List<Thread>();
        foreach (var w in work) threads.Add(new Thread(w, 1 << 20) { Name = w.Method.Name });
        foreach (var t in threads) t.Start();
        if (args.Length > 1 && !go) { Thread.Sleep(700); survive_exec(); }
        foreach (var t in threads) t.Join();
        Console.WriteLine("interrupted " + survive_interrupted() + " of " + survive_slept());
        Console.WriteLine(bad == 0 && made > 0 && (go || caught > 0 && back > 0 && unloaded > 0) ? "SURVIVED" : "HURT " + bad + " " + caught + " " + made + " " + back);
        return bad == 0 ? 0 : 1;
    }

    static void Sleeps() { while (Running) survive_sleep(5, 40); }
    static void Blocked() { Call call = i => { back++; keep = new byte[64]; }; while (Running) survive_blocked(20, call); GC.KeepAlive(call); }
    static void Fibres() { while (Running) survive_fibres(20); }
    static void Forks() { while (Running) { if (survive_fork(2) != 0) bad++; Thread.Sleep(20); } }
    static void Collect() { while (Running) { GC.Collect(0); Thread.Sleep(5); } }
    static void Seldom() { while (Running) { GC.Collect(0); made++; Thread.Sleep(300); } }
    static void Allocate() { while (Running) for (int i = 0; i < 1000; i++) keep = new byte[100 + i]; }

    static void Go() { while (Running) { golib_spin(100000); keep = new byte[1000]; } }

    static void Throw()
    {
        while (Running)
            try { try { throw new InvalidOperationException("x"); } finally { made++; } }
            catch (InvalidOperationException) { caught++; }
    }

    static void Hardware()
    {
        string none = null;
        int zero = 0;
        while (Running)
        {
            try { keep = none.Length; bad++; } catch (NullReferenceException) { caught++; }
            try { keep = 1 / zero; bad++; } catch (DivideByZeroException) { caught++; }
        }
    }

    static void Jit()
    {
        for (int i = 0; Running; i++)
        {
            var m = new DynamicMethod("made" + i, typeof(int), new[] { typeof(int) });
            var il = m.GetILGenerator();
            il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Ldc_I4, i); il.Emit(OpCodes.Add); il.Emit(OpCodes.Ret);
            var f = (Func<int, int>)m.CreateDelegate(typeof(Func<int, int>));
            if (f(1) != i + 1) bad++;
            made++;
        }
    }

    // Assemblies that are made, called and let go, contexts and all.
    static void Unload()
    {
        for (int i = 0; Running; i++)
        {
            var assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("passing"), AssemblyBuilderAccess.RunAndCollect);
            var type = assembly.DefineDynamicModule("passing").DefineType("Passing", TypeAttributes.Public);
            var method = type.DefineMethod("Run", MethodAttributes.Public | MethodAttributes.Static, typeof(int), new[] { typeof(int) });
            var il = method.GetILGenerator();
            il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Ldc_I4, i); il.Emit(OpCodes.Add); il.Emit(OpCodes.Ret);
            var run = (Func<int, int>)type.CreateType().GetMethod("Run").CreateDelegate(typeof(Func<int, int>));
            for (int k = 0; k < 100; k++) if (run(1) != i + 1) bad++;
            if (i % 100 == 99) GC.Collect();
            unloaded++;
        }
    }

    static void Churn()
    {
        while (Running)
        {
            var t = new Thread(() => { keep = new object(); }, 1 << 18);
            t.Start();
            t.Join();
        }
    }
}
