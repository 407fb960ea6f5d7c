// Scenarios of Truth.cs whose threads are in managed code most of the time, each
// with something that unwinders stumble over.
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

static unsafe partial class T
{
    const ulong Deepest = 41;

    static Body[] More()
    {
        return new Body[] {
            s => FilterHost(s), s => FinallyHost(s), s => Many(s), s => GenericVirtuals(s), s => Multicast(s), s => AsyncHost(s), // 31
            s => Iterate(s), s => Replaced(s), s => Tiers<int>(s, 12), s => LeafLoop(s), s => Deeper(s, 9000), s => Fibres(s), // 37
            s => Structs(s), s => Unrolled(s, 3), s => Virtuals(s), s => Collected(s), s => Alternate(s), s => CallOnFibres(s), // 43
            s => Unloaded(s), // 49
        };
    }

    // Threads whose return addresses the runtime replaces, again and again: each
    // collection stops them, most often in a method that has no place to stop in.
    static Body[] Hijack()
    {
        return new Body[] { s => Hijacked(s), s => Hijacked(s), s => Hijacked(s), s => { GC.Collect(); Thread.Sleep(0); } }; // 61
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Hijacked(Shadow* s)
    {
        Push(s, 68);
        double x = 1;
        for (int i = 0; i < 50; i++) x = Straight(s, x);
        Pop(s);
        return x;
    }

    // No loop, no call: some microseconds.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Straight(Shadow* s, double x) { Push(s, 67); x = S256(S256(x)); Pop(s); return x; }

    [MethodImpl(MethodImplOptions.AggressiveInlining)] static double S4(double x) { x = 1 / (x + 1); x = 1 / (x + 2); x = 1 / (x + 3); return 1 / (x + 4); }
    [MethodImpl(MethodImplOptions.AggressiveInlining)] static double S16(double x) { return S4(S4(S4(S4(x)))); }
    [MethodImpl(MethodImplOptions.AggressiveInlining)] static double S64(double x) { return S16(S16(S16(S16(x)))); }
    [MethodImpl(MethodImplOptions.AggressiveInlining)] static double S256(double x) { return S64(S64(S64(S64(x)))); }

    // An exception in flight, a filter under way: the frames of the thrower are still
    // there, and the filter is a piece of its method over them. So is the handler.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void FilterHost(Shadow* s)
    {
        Push(s, 31);
        ulong depth = s->Depth;
        try { FilterThrower(s, 3); }
        catch (InvalidOperationException) when (Begin(s, 31) && FilterTest(s) && End(s))
        {
            Begin(s, 31);
            Work(20000);
            End(s);
            Volatile.Write(ref s->Depth, depth);
        }
        Volatile.Write(ref s->Unstable, 0);
        Pop(s);
    }

    // From here to End the stack is known, though an exception is in flight.
    static bool Begin(Shadow* s, ulong id) { Push(s, id); Volatile.Write(ref s->Unstable, 0); return true; }

    static bool End(Shadow* s) { Volatile.Write(ref s->Unstable, 1); Pop(s); return true; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool FilterTest(Shadow* s) { Push(s, 33); Work(20000); Pop(s); return true; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void FilterThrower(Shadow* s, int n)
    {
        Push(s, 32);
        if (n == 0)
        {
            Volatile.Write(ref s->Unstable, 1);
            throw new InvalidOperationException();
        }
        FilterThrower(s, n - 1);
        Pop(s);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void FinallyHost(Shadow* s)
    {
        Push(s, 34);
        ulong depth = s->Depth;
        try { FinallyThrower(s, 3); }
        catch (InvalidOperationException) { Volatile.Write(ref s->Depth, depth); }
        Volatile.Write(ref s->Unstable, 0);
        Pop(s);
    }

    // Its finally runs in the second pass only.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void FinallyThrower(Shadow* s, int n)
    {
        Push(s, 35);
        try
        {
            if (n == 0)
            {
                Volatile.Write(ref s->Unstable, 1);
                throw new InvalidOperationException();
            }
            FinallyThrower(s, n - 1);
        }
        finally
        {
            Begin(s, 35);
            CleanUp(s);
            End(s);
        }
        Pop(s);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CleanUp(Shadow* s) { Push(s, 36); Work(20000); Pop(s); }

    // One call site, so many classes that the runtime looks the method up by a hash.
    class S1 : IShape { [MethodImpl(MethodImplOptions.NoInlining)] public int Area(Shadow* s) { Push(s, 37); int r = Work(40); Pop(s); return r; } }
    class S2 : IShape { [MethodImpl(MethodImplOptions.NoInlining)] public int Area(Shadow* s) { Push(s, 38); int r = Work(40); Pop(s); return r; } }
    class S3 : IShape { [MethodImpl(MethodImplOptions.NoInlining)] public int Area(Shadow* s) { Push(s, 39); int r = Work(40); Pop(s); return r; } }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Many(Shadow* s)
    {
        Push(s, 40);
        var shapes = new IShape[] { new Circle(), new S1(), new S2(), new S3(), new Square() };
        int r = 0;
        for (int i = 0; i < 400; i++) r += shapes[i * 7 % 5].Area(s);
        Pop(s);
        return r;
    }

    class Base
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public virtual int Call<A>(Shadow* s, int n) { Push(s, 41); int r = Work(60) + (n > 0 ? Call<List<A>>(s, n - 1) : 0); Pop(s); return r; }
    }

    class Derived : Base
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public override int Call<A>(Shadow* s, int n) { Push(s, 42); int r = Work(60) + (n > 0 ? Call<A>(s, n - 1) : 0); Pop(s); return r; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int GenericVirtuals(Shadow* s)
    {
        Push(s, 43);
        var objects = new Base[] { new Base(), new Derived() };
        int r = 0;
        for (int i = 0; i < 100; i++) r += objects[i % 2].Call<string>(s, 3) + objects[i % 2].Call<int>(s, 2);
        Pop(s);
        return r;
    }

    delegate void Listener(Shadow* s);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Multicast(Shadow* s)
    {
        Push(s, 44);
        Listener all = First;
        all += Second;
        all += First;
        for (int i = 0; i < 100; i++) all(s);
        Pop(s);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void First(Shadow* s) { Push(s, 45); Work(100); Pop(s); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Second(Shadow* s) { Push(s, 46); Work(100); Pop(s); }

    // What waits is continued by this very thread, inside SetResult.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void AsyncHost(Shadow* s)
    {
        Push(s, 47);
        for (int i = 0; i < 20; i++)
        {
            var source = new TaskCompletionSource<int>();
            var task = Async.Outer((IntPtr)s, source.Task);
            source.SetResult(i);
            task.Wait();
        }
        Pop(s);
    }

    public static void PushAt(IntPtr shadow, int id) { Push((Shadow*)shadow, (ulong)id); }
    public static void PopAt(IntPtr shadow) { Pop((Shadow*)shadow); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Iterate(Shadow* s)
    {
        Push(s, 50);
        int r = 0;
        foreach (int i in Numbers((IntPtr)s, 50)) r += i + Work(50);
        Pop(s);
        return r;
    }

    static IEnumerable<int> Numbers(IntPtr shadow, int n)
    {
        for (int i = 0; i < n; i++)
        {
            PushAt(shadow, 51);
            int r = Work(300);
            PopAt(shadow);
            yield return r;
        }
    }

    // A loop that is never left: replaced on the stack, where it stays.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Replaced(Shadow* s)
    {
        Push(s, 52);
        int r = 0;
        for (int i = 0; Running; i++)
        {
            for (int k = 0; k < 20000; k++) r = (r ^ k) * 16777619;
            Leaf(s);
        }
        Pop(s);
        return r;
    }

    struct Wrapped<A> { public A Value; }

    // Code of its own for each type: calls are counted, and code is replaced.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Tiers<A>(Shadow* s, int n) where A : struct
    {
        Push(s, 53);
        int r = Work(100) + (n > 0 ? Tiers<Wrapped<A>>(s, n - 1) : 0);
        Pop(s);
        return r;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Deeper(Shadow* s, int n)
    {
        Push(s, 54);
        int r = n == 0 ? Work(3000000) : Deeper(s, n - 1) + 1;
        Pop(s);
        return r;
    }

    [DllImport("truth")] static extern void truth_fibres(Shadow* s, int rounds);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Fibres(Shadow* s) { Push(s, 55); truth_fibres(s, 10); Work(50000); Pop(s); }

    [DllImport("truth")] static extern void truth_alternate(Shadow* s);

    // Interrupted in native code by a handler that is on another stack.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Alternate(Shadow* s) { Push(s, 63); for (int i = 0; i < 20; i++) truth_alternate(s); Pop(s); }

    [DllImport("truth")] static extern void truth_call_on_fibres(Shadow* s, Callback f, int rounds);

    // The fibre has a shadow of its own, which Called is given.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void CallOnFibres(Shadow* s) { Push(s, 64); truth_call_on_fibres(s, called, 10); Work(20000); Pop(s); }

    // An assembly that is made, called and let go: its code, its method and its whole
    // context are collected, while others' stacks are read.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Unloaded(Shadow* s)
    {
        Push(s, 65);
        int oldest = passes++ % passed.Length;
        if (passed[oldest] != null && !passed[oldest].IsAlive) unloaded++;
        var run = Passing(out passed[oldest]);
        if (unloaded == 0) run((IntPtr)s);
        else Again(s, run);
        if (passes % (unloaded == 0 ? 8 : 32) == 0) GC.Collect(); // which all others wait for
        Pop(s);
    }

    // Types of the last ones: a type lives as long as its assembly does.
    static readonly WeakReference[] passed = new WeakReference[8];
    static int passes, unloaded;

    // Only where others like it are gone.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Again(Shadow* s, Func<IntPtr, int> run) { Push(s, 69); for (int i = 0; i < 50; i++) run((IntPtr)s); Pop(s); }

    static Func<IntPtr, int> Passing(out WeakReference type)
    {
        var assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("passing"), AssemblyBuilderAccess.RunAndCollect);
        var builder = assembly.DefineDynamicModule("passing").DefineType("Passing", TypeAttributes.Public);
        var method = builder.DefineMethod("Run", MethodAttributes.Public | MethodAttributes.Static, typeof(int), new[] { typeof(IntPtr) });
        var il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, typeof(Bridge).GetMethod("Back", BindingFlags.Static | BindingFlags.Public));
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Ret);
        var made = builder.CreateType();
        type = new WeakReference(made);
        return (Func<IntPtr, int>)made.GetMethod("Run", BindingFlags.Static | BindingFlags.Public).CreateDelegate(typeof(Func<IntPtr, int>));
    }

    struct Large { public long A, B, C, D, E, F, G, H; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static Large Made(Shadow* s, Large a, double x) { Push(s, 56); a.A += Work(100); a.H += (long)(x * a.A); Pop(s); return a; }

    // Structures by value and floating-point registers saved across calls.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Structs(Shadow* s)
    {
        Push(s, 57);
        var a = new Large();
        double x = 1, y = 2;
        for (int i = 0; i < 100; i++) { a = Made(s, a, x); x = x * 1.01 + y; y += a.H; }
        Pop(s);
        return x;
    }

    // Room on the stack whose size is known at run time only, and the frame's pointer
    // the one thing that says where it ends.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Unrolled(Shadow* s, int n)
    {
        Push(s, 58);
        int size = 64 + (Work(3) & 1023);
        int* room = stackalloc int[size];
        for (int i = 0; i < size; i++) room[i] = Work(20);
        int r = n > 0 ? Unrolled(s, n - 1) : Work(500);
        r += room[r & 63];
        Pop(s);
        return r;
    }

    abstract class Node { public abstract int Visit(Shadow* s, int n); }
    class Left : Node
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public override int Visit(Shadow* s, int n) { Push(s, 59); int r = n > 0 ? nodes[n & 1].Visit(s, n - 1) : 1; Pop(s); return r; }
    }
    class Right : Node
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public override int Visit(Shadow* s, int n) { Push(s, 60); int r = n > 0 ? nodes[n & 1].Visit(s, n - 1) + 1 : 2; Pop(s); return r; }
    }
    static readonly Node[] nodes = { new Left(), new Right() };

    // Nearly all of the time in prologues and epilogues.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Virtuals(Shadow* s)
    {
        Push(s, 61);
        int r = 0;
        for (int i = 0; i < 200; i++) r += nodes[i & 1].Visit(s, 9);
        Pop(s);
        return r;
    }

    // Many dynamic methods, each of which is collected soon.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Collected(Shadow* s)
    {
        Push(s, 62);
        for (int k = 0; k < 20; k++) Dynamic(s);
        if (Environment.TickCount % 100 == 0) GC.Collect(); // which all others wait for
        Pop(s);
    }
}

// What an assembly of its own may call.
public static class Bridge
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Back(IntPtr shadow)
    {
        T.PushAt(shadow, 66);
        int r = T.Work(2000);
        T.PopAt(shadow);
        return r;
    }
}

// await and pointers do not go together.
static class Async
{
    public static async Task<int> Outer(IntPtr shadow, Task<int> other)
    {
        T.PushAt(shadow, 48);
        T.Work(300);
        int r = await Inner(shadow, 3);
        T.PopAt(shadow);
        r += await other;
        T.PushAt(shadow, 48);
        r += T.Work(300);
        T.PopAt(shadow);
        return r;
    }

    static async Task<int> Inner(IntPtr shadow, int n)
    {
        T.PushAt(shadow, 49);
        int r = T.Work(300);
        if (n > 0) r += await Inner(shadow, n - 1);
        T.PopAt(shadow);
        return r;
    }
}
