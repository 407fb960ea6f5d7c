// Threads that know their own stacks (Truth.cs), for .NET 8, which exists as somebody's
// trimmed program only, whose core library has cut nearly all: threads are made in C.
// Usage: Truth8 SECONDS | deadlock
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

static unsafe class T
{
    const int Room = 200;

    struct Shadow
    {
        public ulong Magic, Version, Depth, Scenario, Unstable;
        public fixed ulong Entries[Room];
    }

    delegate void Body(int number);
    delegate int Callback(Shadow* shadow, int depth);

    [DllImport("truth")] static extern int truth_spin(Shadow* s, int rounds);
    [DllImport("truth")] static extern int truth_sleep(Shadow* s, int microseconds);
    [DllImport("truth")] static extern int truth_call(Shadow* s, Callback f, int depth);
    [DllImport("truth")] static extern int truth_call_deep(Shadow* s, Callback f, int depth);
    [DllImport("truth")] static extern int truth_number(string text);
    [DllImport("truth")] static extern void truth_say(string text);
    [DllImport("truth")] static extern void truth_threads(Body body, int n);

    static readonly object first = new object(), second = new object();
    static byte[] kept;
    static DateTime end;
    static Callback called;

    static int Main(string[] args)
    {
        called = Called;
        if (args[0] == "deadlock")
        {
            Body locker = Lock;
            truth_threads(locker, 3);
            return 1;
        }
        end = DateTime.UtcNow.AddSeconds(truth_number(args[0]));
        Body body = Run;
        truth_threads(body, 7);
        truth_say("TRUTH DONE");
        return 0;
    }

    // The C library's functions write to the shadow too: it is not kept in registers.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Push(Shadow* s, ulong id) { s->Entries[s->Depth % Room] = id; s->Depth++; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Pop(Shadow* s) { s->Depth--; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Run(int number)
    {
        byte* memory = stackalloc byte[sizeof(Shadow) + 16];
        Shadow* s = (Shadow*)(((ulong)memory + 15) & ~15ul);
        s->Depth = s->Unstable = 0;
        s->Version = 1;
        s->Scenario = (ulong)number + 1;
        s->Magic = 0x4853574b44454553; // "SEEDWKSH"
        while (DateTime.UtcNow < end)
            switch (number)
            {
                case 0: Recurse(s, 12); break;
                case 1: Spin(s); break;
                case 2: NativeSleep(s); break;
                case 3: Chain(s, 5); break;
                case 4: Allocate(s, 8); break;
                case 5: Sort(s); break;
                default: StackAlloc(s, 3); break;
            }
        s->Magic = 0;
    }

    // Two threads lock both objects in different orders, and a third one queues behind them.
    static void Lock(int number)
    {
        Shadow s = new Shadow();
        if (number == 2)
        {
            truth_sleep(&s, 1000000);
            truth_say("deadlocked");
        }
        lock (number == 1 ? second : first)
        {
            truth_sleep(&s, 500000);
            lock (number == 1 ? first : second) { }
        }
    }

    // Collections suspend the other threads, and replace their return addresses for that.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Allocate(Shadow* s, int n)
    {
        Push(s, 7);
        if (n == 0)
            for (int i = 0; i < 100; i++) kept = new byte[8000];
        else
            Allocate(s, n - 1);
        Pop(s);
        return kept.Length;
    }

    struct Pair { public int A, B; }

    // The core library's code for a type of this module calls back.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Sort(Shadow* s)
    {
        Push(s, 19);
        Pair[] pairs = new Pair[64];
        for (int i = 0; i < pairs.Length; i++) pairs[i].A = i * 7919 % 101;
        Array.Sort(pairs, delegate(Pair x, Pair y) { return Compare(s, x.A, y.A); });
        Pop(s);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Compare(Shadow* s, int x, int y)
    {
        Push(s, 20);
        int r = Work(500 + x % 2) == 0 ? 0 : x.CompareTo(y);
        Pop(s);
        return r;
    }

    static int Work(int n)
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
    static int Chain(Shadow* s, int depth)
    {
        Push(s, 2);
        int r = depth % 2 == 0 ? truth_call(s, called, depth) : truth_call_deep(s, called, depth);
        Pop(s);
        return r;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Called(Shadow* s, int depth)
    {
        Push(s, 3);
        int r = depth == 0 ? Work(3000) : Chain(s, depth - 1);
        Pop(s);
        return r;
    }

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
}
