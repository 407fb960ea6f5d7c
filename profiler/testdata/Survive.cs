// A program that is easily hurt: it sleeps in native code, blocks signals, runs on
// fibres, forks, collects, throws, compiles, loads and unloads.
// With "go", a library of Go is in it too, and nothing that cannot live with one:
// .NET itself does not survive hardware exceptions beside it. With "storm" it collects
// every 5 ms besides, with "room" on alternate stacks that have room for what the runtime
// does on them then (dotnet/runtime issue 127320).
// Text is written and read by native code: .NET 10's core library is the one that its
// program left of it.
// Usage: Survive.exe SECONDS [exec|go|storm|room]
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.InteropServices;
using System.Threading;

static class Survive
{
    delegate void Call(int i);
    [DllImport("survive")] static extern void survive_sleep(int times, int milliseconds);
    [DllImport("survive")] static extern void survive_blocked(int rounds, Call call);
    [DllImport("survive")] static extern void survive_fibres(int rounds);
    [DllImport("survive")] static extern int survive_fork(int times);
    [DllImport("survive")] static extern int survive_exec();
    [DllImport("survive")] static extern void survive_report(int well, int bad, int caught, int made, int back); 
    [DllImport("survive")] static extern void survive_room();
    [DllImport("survive")] static extern void survive_urgent();
    [DllImport("survive")] static extern double survive_number(string text);

    [DllImport("golib")] static extern long golib_spin(long rounds);

    static DateTime end;
    static volatile object keep;
    static volatile bool becoming; // another program
    static bool roomy;
    static int bad, caught, made, back, unloaded;
    static bool Running { get { return DateTime.UtcNow < end; } }

    static int Main(string[] args)
    {
        end = DateTime.UtcNow.AddSeconds(survive_number(args[0]));
        var work = new List<ThreadStart> { Sleeps, Blocked, Fibres, Forks, Collect, Throw, Hardware, Jit, Churn, Allocate, Unload };
        roomy = args.Length > 1 && args[1] == "room";
        bool storm = roomy || args.Length > 1 && args[1] == "storm", go = storm || args.Length > 1 && args[1] == "go";
        if (go) work = new List<ThreadStart> { Sleeps, Seldom, Go, Go };
        if (storm) work.Add(Collect);
        var threads = new List<Thread>();
        foreach (var w in work) threads.Add(Begun(w));
        foreach (var t in threads) t.Start();
        bool urgent = args.Length > 1 && args[1] == "urgent";
        if (urgent) { Thread.Sleep(700); survive_urgent(); }
        if (args.Length > 1 && !go && !urgent) { Thread.Sleep(700); becoming = true; survive_exec(); }
        foreach (var t in threads) t.Join();
        survive_report(bad == 0 && made > 0 && (go || caught > 0 && back > 0 && unloaded > 0) ? 1 : 0, bad, caught, made, back);
        return bad == 0 ? 0 : 1;
    }

    static Thread Begun(ThreadStart work)
    {
        return new Thread(() => { if (roomy) survive_room(); work(); }, 1 << 20) { Name = work.Method.Name };
    }

    static void Sleeps() { while (Running) survive_sleep(5, 40); }
    static void Blocked() { Call call = i => { back++; keep = new byte[64]; }; while (Running) survive_blocked(20, call); GC.KeepAlive(call); }
    static void Fibres() { while (Running) survive_fibres(20); }
    static void Forks() { while (Running) { if (survive_fork(2) != 0) bad++; Thread.Sleep(20); } }
    static void Collect() { while (Running) { Young(); Thread.Sleep(5); } }
#if NET10
    static void Young() { GC.Collect(); } // what that program left of it
#else
    static void Young() { GC.Collect(0); }
#endif
    static void Seldom() { while (Running) { Young(); made++; Thread.Sleep(300); } }
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

    // Methods that are compiled all the time.
    static void Jit()
    {
        for (int i = 0; Running; i += compiled)
        {
            Compile(i);
            made += compiled;
        }
    }

#if NET10
    // 10.0.9 loses what the resolver of a dynamic method returns if a collection begins just
    // then, and dies of it with nothing of ours in it (dotnet/runtime issue 131267): so these are
    // methods of assemblies, not too many of those at a time.
    const int compiled = 100;
    static string Name(int k) { return new string('r', k + 1); } // this compiler cannot read what "+" asks for here
    static void Compile(int i)
    {
        var type = Passing();
        for (int k = 0; k < compiled; k++) Adds(type.DefineMethod(Name(k), MethodAttributes.Public | MethodAttributes.Static, typeof(int), new[] { typeof(int) }).GetILGenerator(), i + k);
        var done = type.CreateType();
        for (int k = 0; k < compiled; k++)
            if (((Func<int, int>)done.GetMethod(Name(k)).CreateDelegate(typeof(Func<int, int>)))(1) != i + k + 1) bad++;
        Thread.Sleep(20);
    }
#else
    const int compiled = 1;
    static void Compile(int i)
    {
        var m = new DynamicMethod("made", typeof(int), new[] { typeof(int) });
        Adds(m.GetILGenerator(), i);
        if (((Func<int, int>)m.CreateDelegate(typeof(Func<int, int>)))(1) != i + 1) bad++;
    }
#endif

    // A type of an assembly that can be unloaded.
    static TypeBuilder Passing()
    {
        var assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("passing"), AssemblyBuilderAccess.RunAndCollect);
        return assembly.DefineDynamicModule("passing").DefineType("Passing", TypeAttributes.Public);
    }

    static void Adds(ILGenerator il, int i)
    {
        il.Emit(OpCodes.Ldarg_0); il.Emit(OpCodes.Ldc_I4, i); il.Emit(OpCodes.Add); il.Emit(OpCodes.Ret);
    }

    // Assemblies that are made, called and let go, contexts and all. Not as many as there
    // can be: 9.0.5 loses some of the memory that it maps twice with each, and after 13
    // minutes of them, with nothing of ours in it, "Releasing the double mapped memory failed".
    static void Unload()
    {
        for (int i = 0; Running; i++)
        {
            var type = Passing();
            Adds(type.DefineMethod("Run", MethodAttributes.Public | MethodAttributes.Static, typeof(int), new[] { typeof(int) }).GetILGenerator(), i);
            var run = (Func<int, int>)type.CreateType().GetMethod("Run").CreateDelegate(typeof(Func<int, int>));
            for (int k = 0; k < 100; k++) if (run(1) != i + 1) bad++;
            if (i % 10 == 9) GC.Collect();
            unloaded++;
            Thread.Sleep(100);
        }
    }

    // While a thread is about to exec, the kernel gives the process no new thread (EAGAIN, as
    // long as the new program is looked for), which the runtime takes for a want of memory.
    static void Churn()
    {
        while (Running)
        {
            var t = new Thread(() => { keep = new object(); }, 1 << 18);
            try { t.Start(); } catch (OutOfMemoryException) { if (!becoming) throw; continue; }
            t.Join();
        }
    }
}
