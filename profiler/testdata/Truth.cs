// Threads that know their own stacks. Every thread keeps a shadow stack in its
// own stack memory (truth.h); every method of this file and every function of
// truth.c writes itself there on entry and takes itself off before it returns.
// A copy of the stack then holds the truth about itself, and the tests compare
// it with the merged stack.
// The scenarios of TruthMore.cs are another set: most of their time is spent in
// managed code. Both are compiled against the runtime they run on, of which .NET
// 10 exists as somebody's trimmed program only: so what the framework has cut
// there, a parser and a console among it, is of truth.c.
// Usage: Truth.exe SECONDS [more|hijack]. A line on standard input ends it earlier.
using System;
using System.Collections.Generic;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

static unsafe partial class T
{
    const int Room = 12000, Usual = 2000; // entries; a thread has room for as many as it needs

    struct Shadow
    {
        public ulong Magic, Version, Depth, Scenario, Unstable;
        public fixed ulong Entries[Room];
    }

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    delegate int Callback(IntPtr shadow, int depth);

    [DllImport("truth")] static extern int truth_spin(Shadow* s, int rounds);
    [DllImport("truth")] static extern int truth_sleep(Shadow* s, int microseconds);
    [DllImport("truth")] static extern int truth_recurse(Shadow* s, int depth);
    [DllImport("truth")] static extern int truth_call(Shadow* s, Callback f, int depth);
    [DllImport("truth")] static extern int truth_call_deep(Shadow* s, Callback f, int depth);
    [DllImport("truth")] static extern int truth_sort(Shadow* s, int n);
    [DllImport("truth", SetLastError = true)] static extern int truth_text(Shadow* s, string text);
    [DllImport("truth")] static extern int truth_number(string text);
    [DllImport("truth")] static extern void truth_rest(int seconds);
    [DllImport("truth")] static extern void truth_say(string text);

    static DateTime end;
    static readonly object gate = new object();
    static readonly Callback called = Called;
    static bool Running { get { return DateTime.UtcNow < end; } }

    static void Push(Shadow* s, ulong id)
    {
        ulong d = Volatile.Read(ref s->Depth);
        Volatile.Write(ref s->Entries[d % Room], id);
        Volatile.Write(ref s->Depth, d + 1);
    }

    static void Pop(Shadow* s) { Volatile.Write(ref s->Depth, s->Depth - 1); }

    delegate void Body(Shadow* s);

    // The root of every thread: its frame holds the shadow.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Run(ulong scenario, Body body, int room)
    {
        byte* memory = stackalloc byte[sizeof(Shadow) - 8 * (Room - room) + 16];
        Shadow* s = (Shadow*)(((ulong)memory + 15) & ~15ul);
        s->Version = 1;
        s->Scenario = scenario;
        s->Magic = 0x4853574b44454553; // "SEEDWKSH"
        try { while (Running) { body(s); } }
        finally { s->Magic = 0; }
    }

    static int Main(string[] args)
    {
        end = DateTime.UtcNow.AddSeconds(truth_number(args[0]));
        bool hijack = args.Length > 1 && args[1] == "hijack", more = args.Length > 1;
        ulong first = hijack ? 61u : more ? 31u : 1u;
        var bodies = hijack ? Hijack() : more ? More() : new Body[] {
            s => Recurse(s, 12), s => Spin(s), s => NativeSleep(s), s => Chain(s, 5), s => Sleeper(s), s => Waiter(s),
            s => Contender(s), s => Contender(s), s => Allocate(s), s => Catcher(s), s => StackAlloc(s, 3), s => Shapes(s),
            s => Lambda(s), s => Deep(s, 1500), s => Text(s), s => Generic<string>(s, 4), s => Sort(s), s => NativeRecurse(s),
            s => NativeSort(s), s => Dynamic(s), s => LeafLoop(s),
        };
        var threads = new List<Thread>();
        for (int i = 0; i < bodies.Length; i++)
        {
            ulong scenario = (ulong)i + first;
            var body = bodies[i];
            int room = scenario == Deepest ? Room : Usual;
            var t = new Thread(() => Run(scenario, body, room), 16 << 20);
            t.Start();
            threads.Add(t);
        }
        var pool = new List<Task>();
        for (int i = 0; i < 2 && !more; i++)
            pool.Add(System.Threading.Tasks.Task.Run(() => Run(100, s => Task(s), Usual)));
        truth_rest(truth_number(args[0]));
        end = DateTime.UtcNow;
        for (int i = 0; i < threads.Count; i++) threads[i].Join();
        for (int i = 0; i < pool.Count; i++) pool[i].Wait();
        truth_say("TRUTH DONE");
        return 0;
    }

    internal static int Work(int n)
    {
        int h = n;
        for (int i = 0; i < n; i++) h = (h ^ i) * 16777619;
        return h;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Recurse(Shadow* s, int n)
    {
        Push(s, 1);
        int r = n == 0 ? Work(2000) : Recurse(s, n - 1) + Work(50);
        if (n % 4 == 1) r += Recurse(s, n - 1);
        Pop(s);
        return r;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Spin(Shadow* s) { Push(s, 22); truth_spin(s, 20000); Pop(s); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void NativeSleep(Shadow* s) { Push(s, 23); truth_sleep(s, 500); Pop(s); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void NativeRecurse(Shadow* s) { Push(s, 24); truth_recurse(s, 30); Pop(s); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void NativeSort(Shadow* s) { Push(s, 25); truth_sort(s, 300); Pop(s); }

    // managed -> C -> managed -> C ..., several levels.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Chain(Shadow* s, int depth)
    {
        Push(s, 2);
        int r = depth % 2 == 0 ? truth_call(s, called, depth) : truth_call_deep(s, called, depth);
        Pop(s);
        return r;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Called(IntPtr shadow, int depth)
    {
        var s = (Shadow*)shadow;
        Push(s, 3);
        int r = depth == 0 ? Work(3000) : Chain(s, depth - 1);
        Pop(s);
        return r;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Sleeper(Shadow* s) { Push(s, 4); Thread.Sleep(1); Pop(s); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Waiter(Shadow* s)
    {
        Push(s, 5);
        var o = new object();
        lock (o) Monitor.Wait(o, 2);
        Pop(s);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Contender(Shadow* s)
    {
        Push(s, 6);
        lock (gate) Thread.Sleep(1);
        Pop(s);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Allocate(Shadow* s)
    {
        Push(s, 7);
        object keep = null;
        for (int i = 0; i < 200; i++) keep = new object[] { keep, new byte[200] };
        if (Environment.TickCount % 50 == 0) GC.Collect();
        GC.KeepAlive(keep);
        Pop(s);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Catcher(Shadow* s)
    {
        Push(s, 9);
        ulong depth = s->Depth;
        try { Thrower(s, 5); }
        catch (InvalidOperationException)
        {
            Volatile.Write(ref s->Depth, depth);
        }
        Volatile.Write(ref s->Unstable, 0);
        Work(3000);
        Thread.Sleep(1);
        Pop(s);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Thrower(Shadow* s, int n)
    {
        Push(s, 8);
        if (n == 0)
        {
            Volatile.Write(ref s->Unstable, 1);
            throw new InvalidOperationException();
        }
        Thrower(s, n - 1);
        Pop(s);
    }

    // stackalloc and an inlined P/Invoke in one method.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int StackAlloc(Shadow* s, int n)
    {
        Push(s, 10);
        int* room = stackalloc int[16 << n];
        room[n] = n;
        int r = n == 0 ? truth_spin(s, 1000) : StackAlloc(s, n - 1);
        r += truth_spin(s, 200) + room[n];
        Pop(s);
        return r;
    }

    interface IShape { int Area(Shadow* s); }

    class Circle : IShape
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public int Area(Shadow* s) { Push(s, 11); int r = Work(300); Pop(s); return r; }
    }

    class Square : IShape
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public int Area(Shadow* s) { Push(s, 12); int r = Work(300); Pop(s); return r; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Shapes(Shadow* s)
    {
        Push(s, 13);
        var shapes = new IShape[] { new Circle(), new Square() };
        int r = 0;
        for (int i = 0; i < 40; i++) r += shapes[i % 2].Area(s);
        Pop(s);
        return r;
    }

    delegate int Step(Shadow* s);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Lambda(Shadow* s)
    {
        Push(s, 15);
        Step step = x => { Push(x, 14); int n = Work(3000); Pop(x); return n; };
        int r = step(s);
        Pop(s);
        return r;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Deep(Shadow* s, int n)
    {
        Push(s, 16);
        int r = n == 0 ? truth_spin(s, 200000) : Deep(s, n - 1) + 1;
        Pop(s);
        return r;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Text(Shadow* s) { Push(s, 17); truth_text(s, "a text that is marshalled"); Pop(s); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Generic<A>(Shadow* s, int n)
    {
        Push(s, 18);
        int r = n == 0 ? Work(1500) : Generic<List<A>>(s, n - 1);
        Pop(s);
        return r;
    }

    // CoreLib's precompiled frames between ours.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Sort(Shadow* s)
    {
        Push(s, 19);
        var a = new int[60];
        for (int i = 0; i < a.Length; i++) a[i] = i * 7919 % 61;
        current = s;
        Array.Sort(a, compare);
        Pop(s);
    }

    [ThreadStatic] static Shadow* current;
    static readonly Comparison<int> compare = Compare;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Compare(int a, int b)
    {
        Push(current, 20);
        int r = a.CompareTo(b) + Work(30) * 0;
        Pop(current);
        return r;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Task(Shadow* s) { Push(s, 21); Work(20000); Thread.Sleep(1); Pop(s); }

    // A dynamic method, which the CLR does not report, between two of ours.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Dynamic(Shadow* s)
    {
        Push(s, 26);
        var m = new DynamicMethod("made", typeof(int), new[] { typeof(IntPtr) }, typeof(T).Module, true);
        var il = m.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, typeof(T).GetMethod("DynamicTarget", System.Reflection.BindingFlags.Static | System.Reflection.BindingFlags.NonPublic));
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Ret);
        var f = (Func<IntPtr, int>)m.CreateDelegate(typeof(Func<IntPtr, int>));
        for (int i = 0; i < 20; i++) f((IntPtr)s);
        Pop(s);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int DynamicTarget(IntPtr shadow)
    {
        var s = (Shadow*)shadow;
        Push(s, 27);
        int r = Work(2000);
        Pop(s);
        return r;
    }

    static void LeafLoop(Shadow* s) { for (int i = 0; i < 300; i++) Leaf(s); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Leaf(Shadow* s) { Push(s, 28); Pop(s); }
}
