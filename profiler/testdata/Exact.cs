// Programs that know the exact processor time of their methods: the thread's own clock is
// read before and after each call, never by a timer. At the end the times are printed as
// lines of JSON (exact.c).
// Usage: Exact.exe SCENARIO SECONDS
// A scenario has a name and up to two letters that say which parameters it takes.
// Text is read and written by native code: .NET 10's core library is the one that its
// program left of it.
using System;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

static class Exact
{
    [DllImport("exact")] static extern long exact_clock();
    [DllImport("exact")] static extern long exact_now();
    [DllImport("exact")] static extern void exact_add(int slot, long begin);
    [DllImport("exact")] static extern void exact_empty(long time);
    [DllImport("exact")] static extern void exact_name(int slot, string name);
    [DllImport("exact")] static extern uint exact_work(long rounds);
    [DllImport("exact")] static extern void exact_sleep_until_multiple(long period);
    [DllImport("exact")] static extern int exact_listen();
    [DllImport("exact")] static extern int exact_accept(int listener);
    [DllImport("exact")] static extern int exact_connect(int listener);
    [DllImport("exact")] static extern int exact_send(int fd);
    [DllImport("exact")] static extern int exact_receive(int fd);
    [DllImport("exact")] static extern void exact_close(int fd);
    [DllImport("exact")] static extern uint exact_blocked(long rounds);
    [DllImport("exact")] static extern void exact_read(long times);
    [DllImport("exact")] static extern double exact_number(string text);
    [DllImport("exact")] static extern void exact_report();

    delegate void Body(long rounds);

    const long Millisecond = 1000000;

    static readonly Body[] bodies = new Body[8];
    static volatile uint sink;
    static volatile object keep;
    static double perMicrosecond, nativePerMicrosecond; // rounds
    static long end;
    static bool Running { get { return exact_now() < end; } }

    static int Main(string[] args)
    {
        long began = exact_now();
        perMicrosecond = Calibrate(Calibrated);
        nativePerMicrosecond = Calibrate(CalibratedNative);
        exact_empty(MeasureNothing());
        end = began + (long)(1e9 * exact_number(args[1]));
        int number = (int)exact_number(args[0].Length > 5 ? args[0].Substring(5) : "0");
        switch (args[0].Substring(0, 5))
        {
            case "tick-": Tick(number * Millisecond); break;
            case "sleep": Sleep(number); break;
            case "async": Async(number); break;
            case "timer": Timers(number); break;
            case "delay": Delays(number); break;
            case "serve": Server(100); break;
            case "turns": Server(number); break;
            case "colle": Collector(); break;
            case "compi": Compiler(); break;
            case "nativ": Native(); break;
            case "block": Blocked(); break;
            case "fault": Fault(); break;
            case "kerne": Kernel(); break;
            case "kids-": Kids(number); break;
            case "stead": Steady(); break;
            case "leaf-": RunLeaf(); break;
            case "hello": break;
            default: return 2;
        }
        exact_report();
        return 0;
    }

    // ---- measuring

    static double Calibrate(Body body)
    {
        const long rounds = 200000;
        long least = 1 << 30;
        for (int i = 0; i < 8; i++)
        {
            long begin = exact_clock();
            body(rounds);
            least = Math.Min(least, exact_clock() - begin);
        }
        return 1000.0 * rounds / Math.Max(1, least);
    }

    static long MeasureNothing()
    {
        long least = Millisecond;
        for (int i = 0; i < 1000; i++)
        {
            long begin = exact_clock();
            least = Math.Min(least, exact_clock() - begin);
        }
        return least;
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static void Calibrated(long rounds) { sink = Spin(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CalibratedNative(long rounds) { sink = exact_work(rounds); }

    static long Rounds(double microseconds) { return (long)(microseconds * perMicrosecond); }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static uint Spin(long rounds)
    {
        uint x = (uint)rounds;
        for (long i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;
        return x;
    }

    // The method is called once without work: compiling it is not its own time.
    static void Name(int slot, string name, Body body)
    {
        bodies[slot] = body;
        body(0);
        exact_name(slot, name);
    }

    static void Measure(int slot, long rounds)
    {
        long begin = exact_clock();
        bodies[slot](rounds);
        exact_add(slot, begin);
    }

    static Thread Start(ThreadStart body)
    {
        var t = new Thread(body);
        t.Start();
        return t;
    }

    // ---- bursts that begin at the kernel's tick, or at any other time

    [MethodImpl(MethodImplOptions.NoInlining)] static void TickA(long rounds) { sink = Spin(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void TickB(long rounds) { sink = Spin(rounds); }

    static void Tick(long period)
    {
        Name(0, "TickA", TickA); Name(1, "TickB", TickB);
        while (Running) { exact_sleep_until_multiple(period); Measure(0, Rounds(1000)); Measure(1, Rounds(500)); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static void SleepA(long rounds) { sink = Spin(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void SleepB(long rounds) { sink = Spin(rounds); }

    static void Sleep(int milliseconds)
    {
        Name(0, "SleepA", SleepA); Name(1, "SleepB", SleepB);
        while (Running) { Thread.Sleep(milliseconds); Measure(0, Rounds(1200)); Measure(1, Rounds(800)); }
    }

    // ---- an asynchronous server

    [MethodImpl(MethodImplOptions.NoInlining)] static void AsyncA(long rounds) { sink = Spin(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void AsyncB(long rounds) { sink = Spin(rounds); }

    static void Async(int delay)
    {
        Name(0, "AsyncA", AsyncA); Name(1, "AsyncB", AsyncB);
        var tasks = new Task[delay < 20 ? 4 : 16];
        for (int i = 0; i < tasks.Length; i++) tasks[i] = AsyncTask(delay);
        foreach (var t in tasks) t.Wait();
    }

    static async Task AsyncTask(int delay)
    {
        while (Running)
        {
            Measure(0, Rounds(300));
            await Task.Yield();
            Measure(1, Rounds(700));
            await Task.Delay(delay);
        }
    }

    // ---- many short pieces of work, between which the pool's threads yield and sleep

    [MethodImpl(MethodImplOptions.NoInlining)] static void DelayA(long rounds) { sink = Spin(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void DelayB(long rounds) { sink = Spin(rounds); }

    static void Delays(int delay)
    {
        Name(0, "DelayA", DelayA); Name(1, "DelayB", DelayB);
        var tasks = new Task[50];
        for (int i = 0; i < tasks.Length; i++) tasks[i] = DelayTask(delay);
        foreach (var t in tasks) t.Wait();
    }

    static async Task DelayTask(int delay)
    {
        while (Running)
        {
            Measure(0, Rounds(15));
            await Task.Yield();
            Measure(1, Rounds(35));
            await Task.Delay(delay);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static void TimerA(long rounds) { sink = Spin(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void TimerB(long rounds) { sink = Spin(rounds); }

    static void Timers(int period)
    {
        Name(0, "TimerA", TimerA); Name(1, "TimerB", TimerB);
        using (new Timer(_ => { Measure(0, Rounds(150)); Measure(1, Rounds(350)); }, null, 0, period))
            while (Running) Thread.Sleep(100);
    }

    // ---- a server and its clients, who ask as soon as they are answered

    [MethodImpl(MethodImplOptions.NoInlining)] static void ServerA(long rounds) { sink = Spin(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void ServerB(long rounds) { sink = Spin(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void ServerClient(long rounds) { sink = Spin(rounds); }

    static long unit; // microseconds

    static void Server(int microseconds)
    {
        unit = microseconds;
        Name(0, "ServerA", ServerA); Name(1, "ServerB", ServerB); Name(2, "ServerClient", ServerClient);
        int listener = exact_listen();
        var threads = new Thread[6];
        for (int i = 0; i < threads.Length; i += 2)
        {
            int client = exact_connect(listener), server = exact_accept(listener);
            threads[i] = Start(() => Serve(server));
            threads[i + 1] = Start(() => Ask(client));
        }
        foreach (var t in threads) t.Join();
    }

    static void Serve(int fd)
    {
        while (exact_receive(fd) != 0)
        {
            Measure(0, Rounds(unit));
            Measure(1, Rounds(2 * unit));
            exact_send(fd);
        }
    }

    static void Ask(int fd)
    {
        while (Running && exact_send(fd) != 0 && exact_receive(fd) != 0) Measure(2, Rounds(unit / 2));
        exact_close(fd);
    }

    // ---- the runtime's own work: collections, compiling

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CollectorA(long rounds) { for (long i = 0; i < rounds; i++) keep = new object[1 + (i & 255)]; }
    [MethodImpl(MethodImplOptions.NoInlining)] static void CollectorB(long rounds) { sink = Spin(rounds); }

    static void Collector()
    {
        Name(0, "CollectorA", CollectorA); Name(1, "CollectorB", CollectorB);
        var kept = new object[200000];
        for (int i = 0; Running; i++)
        {
            Measure(0, 8000);
            for (int k = 0; k < 100; k++) kept[(i * 100 + k) % kept.Length] = keep;
            if (i % 50 == 0) GC.Collect();
            Measure(1, Rounds(1500));
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CompilerA(long methods)
    {
        if (methods == 0) return;
        var assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("made"), AssemblyBuilderAccess.RunAndCollect);
        var type = assembly.DefineDynamicModule("made").DefineType("Made", TypeAttributes.Public);
        for (int i = 0; i < methods; i++) Adds(type.DefineMethod(new string('m', i + 1), MethodAttributes.Public | MethodAttributes.Static, typeof(int), new[] { typeof(int) }).GetILGenerator());
        var made = type.CreateType();
        for (int i = 0; i < methods; i++) sink = (uint)((Func<int, int>)made.GetMethod(new string('m', i + 1)).CreateDelegate(typeof(Func<int, int>)))(i);
    }

    static void Adds(ILGenerator il)
    {
        il.Emit(OpCodes.Ldarg_0);
        for (int i = 0; i < 60; i++) { il.Emit(OpCodes.Ldc_I4, i); il.Emit(OpCodes.Add); }
        il.Emit(OpCodes.Ret);
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static void CompilerB(long rounds) { sink = Spin(rounds); }

    static void Compiler()
    {
        Name(0, "CompilerA", CompilerA); Name(1, "CompilerB", CompilerB);
        while (Running) { Measure(0, 20); Measure(1, Rounds(2000)); }
    }

    // ---- native code: long calls, and short ones

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void NativeLong(long rounds) { sink = exact_work(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void NativeShort(long calls) { for (long i = 0; i < calls; i++) sink = exact_work(100); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void NativeNone(long rounds) { sink = Spin(rounds); }

    static void Native()
    {
        Name(0, "NativeLong", NativeLong); Name(1, "NativeShort", NativeShort); Name(2, "NativeNone", NativeNone);
        while (Running)
        {
            Measure(0, (long)(3000 * nativePerMicrosecond));
            Measure(1, 5000);
            Measure(2, Rounds(1000));
        }
    }

    // ---- blocked signals: by native code, and by the runtime while it handles a fault

    static string none;

    [MethodImpl(MethodImplOptions.NoInlining)] static void BlockedCall(long rounds) { sink = exact_blocked(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void BlockedCatch(long rounds) { sink = Spin(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void BlockedNone(long rounds) { sink = Spin(rounds); }

    static void Blocked()
    {
        Name(0, "BlockedCall", BlockedCall); Name(1, "BlockedCatch", BlockedCatch); Name(2, "BlockedNone", BlockedNone);
        while (Running)
        {
            Measure(0, (long)(5000 * nativePerMicrosecond));
            try { sink = (uint)none.Length; } catch (NullReferenceException) { Measure(1, Rounds(5000)); }
            Measure(2, Rounds(5000));
        }
    }

    // ---- one fault that became an exception, and a stack of more than 64 KB afterwards

    [MethodImpl(MethodImplOptions.NoInlining)] static void FaultFlat(long rounds) { sink = Spin(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void FaultDeep(long rounds) { sink = Spin(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Descend(int levels, long rounds)
    {
        if (levels == 0) Measure(1, rounds);
        else Descend(levels - 1, rounds);
        sink++;
    }

    static void Fault()
    {
        Name(0, "FaultFlat", FaultFlat); Name(1, "FaultDeep", FaultDeep);
        try { sink = (uint)none.Length; } catch (NullReferenceException) { }
        while (Running) { Measure(0, Rounds(3000)); Descend(2000, Rounds(7000)); }
    }

    // ---- system calls

    [MethodImpl(MethodImplOptions.NoInlining)] static void KernelCalls(long times) { exact_read(times); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void KernelNone(long rounds) { sink = Spin(rounds); }

    static void Kernel()
    {
        Name(0, "KernelCalls", KernelCalls); Name(1, "KernelNone", KernelNone);
        while (Running) { Measure(0, 200); Measure(1, Rounds(3000)); }
    }

    // ---- threads that live shortly: 50 a second, each of TENTHS of a millisecond; 200 of short ones

    [MethodImpl(MethodImplOptions.NoInlining)] static void KidsA(long rounds) { sink = Spin(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void KidsB(long rounds) { sink = Spin(rounds); }

    static void Kids(int tenths)
    {
        Name(0, "KidsA", KidsA); Name(1, "KidsB", KidsB);
        while (Running)
        {
            var t = Start(() => { Measure(0, Rounds(30 * tenths)); Measure(1, Rounds(70 * tenths)); });
            exact_sleep_until_multiple((tenths < 10 ? 5 : 20) * Millisecond);
            t.Join();
        }
    }

    // ---- threads that never sleep

    [MethodImpl(MethodImplOptions.NoInlining)] static void SteadyA(long rounds) { sink = Spin(rounds); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void SteadyB(long rounds) { sink = Spin(rounds); }

    static void Steady()
    {
        Name(0, "SteadyA", SteadyA); Name(1, "SteadyB", SteadyB);
        ThreadStart body = () => { while (Running) { Measure(0, Rounds(2000)); Measure(1, Rounds(6000)); } };
        var other = Start(body);
        body();
        other.Join();
    }

    // A leaf of a few dozen operations without a loop or a call: the runtime cannot stop a thread in it.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Leaf(double x)
    {
        double y = x * 1.0001 + 1, z = x * 0.9999 - 1;
        y = y * z + 3; z = z * y - 5; y = y * 0.5 + z; z = z * 0.25 - y; y = y / (z * z + 1); z = z / (y * y + 1);
        y = y * z + 3; z = z * y - 5; y = y * 0.5 + z; z = z * 0.25 - y; y = y / (z * z + 1); z = z / (y * y + 1);
        return y + z;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void LeafCaller(long rounds)
    {
        double x = rounds;
        for (long i = 0; i < rounds / 32; i++) x = Leaf(x);
        sink = x > 0 ? 1u : 2u;
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static void LeafOther(long rounds) { sink = Spin(rounds); }

    static void RunLeaf()
    {
        Name(0, "Leaf", LeafCaller); Name(1, "LeafOther", LeafOther);
        while (Running) { Measure(0, Rounds(5000)); Measure(1, Rounds(3000)); }
    }
}
