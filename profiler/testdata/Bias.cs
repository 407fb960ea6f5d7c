// Threads whose processor time is known: straight-line code, small virtual methods,
// a loop, block copies, allocation, calls of native code.
// Usage: Bias.exe SECONDS FILE [MILLISECONDS [taken]]
// It runs until it has used three halves of SECONDS of processor time, on a busy machine
// at most eight times as long. MILLISECONDS is the period of the judge's timers, 7 if not
// given. With "taken" SIGURG has a handler too.
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

static class Bias
{
    [DllImport("bias")] static extern int bias_begin(string name, long period);
    [DllImport("bias")] static extern void bias_end();
    [DllImport("bias")] static extern void bias_take();
    [DllImport("bias")] static extern double bias_used();
    [DllImport("bias")] static extern uint bias_native(uint rounds);
    [DllImport("bias")] static extern int bias_write(string path);
    [DllImport("bias")] static extern double bias_number(string text); // a trimmed core library has neither this
    [DllImport("bias")] static extern void bias_say(string text);      // nor that

    static volatile bool stop;
    static double sink;
    static object keep;

    static int Main(string[] args)
    {
        long period = 1000000 * (args.Length > 2 ? (long)bias_number(args[2]) : 7); // nanoseconds
        if (args.Length > 3) bias_take();
        string[] names = { "straight", "virtual", "loop", "memory", "allocate", "pinvoke" };
        ThreadStart[] bodies = { StraightThread, VirtualThread, LoopThread, MemoryThread, AllocateThread, PInvokeThread };
        var threads = new Thread[names.Length];
        for (int i = 0; i < names.Length; i++)
        {
            var name = names[i]; var body = bodies[i];
            threads[i] = new Thread(() => { bias_begin(name, period); body(); bias_end(); }) { Name = name };
        }
        foreach (var t in threads) t.Start();
        double seconds = bias_number(args[0]);
        for (int i = 0; i < 800 && bias_used() < 1.5 * seconds; i++) Thread.Sleep((int)(10 * seconds));
        stop = true;
        foreach (var t in threads) t.Join();
        bias_write(args[1]);
        bias_say("BIAS DONE");
        return 0;
    }

    static void StraightThread() { while (!stop) for (int i = 0; i < 1000; i++) sink = Straight(sink); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Straight(double x)
    {
        double a = x + 1, b = x * 0.5, c = x - 3, d = x + 0.25;
        a = a * b + c; b = b * c + d; c = c * d + a; d = d * a + b; a = a / (b * b + 1); b = b / (c * c + 1);
        c = c / (d * d + 1); d = d / (a * a + 1); a = a * b + c; b = b * c + d; c = c * d + a; d = d * a + b;
        a = a / (b * b + 1); b = b / (c * c + 1); c = c / (d * d + 1); d = d / (a * a + 1);
        return (a + b + c + d) * 0.001;
    }

    abstract class Shape { public abstract int Area(int x); }
    sealed class Square : Shape { [MethodImpl(MethodImplOptions.NoInlining)] public override int Area(int x) { return x * x + 1; } }
    sealed class Strip : Shape { [MethodImpl(MethodImplOptions.NoInlining)] public override int Area(int x) { return x * 3 + 7; } }

    static void VirtualThread()
    {
        Shape[] shapes = { new Square(), new Strip(), new Square(), new Strip() };
        int x = 1;
        while (!stop) x = VirtualLoop(shapes, x);
        sink += x;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int VirtualLoop(Shape[] shapes, int x)
    {
        for (int i = 0; i < 4000; i++) x = shapes[i & 3].Area(x & 1023);
        return x;
    }

    static void LoopThread() { while (!stop) sink += Loop(20000); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Loop(int n) { long s = 0; for (int i = 0; i < n; i++) s += i * 31 ^ s; return s; }

    static void MemoryThread()
    {
        var a = new byte[1 << 20]; var b = new byte[1 << 20];
        while (!stop) { Buffer.BlockCopy(a, 0, b, 0, a.Length); Array.Clear(a, 0, a.Length); }
    }

    static void AllocateThread() { while (!stop) for (int i = 0; i < 200; i++) keep = Alloc(i); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static object Alloc(int i) { return new byte[16 + (i & 63)]; }

    static void PInvokeThread() { uint x = 0; while (!stop) x += bias_native(2000); sink += x; }
}
