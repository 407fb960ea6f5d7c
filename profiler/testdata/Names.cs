// Methods that only their parameters, or what they are instantiated over, tell apart:
// each runs in a thread of its own for a while.
// Usage: Names.exe SECONDS
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading;

static class Names
{
    static long end, sink;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Spin() { while (Stopwatch.GetTimestamp() < end) Thread.Sleep(1); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Over() { Spin(); sink++; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Over(int a) { Spin(); sink++; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Over(ref string a, long[,] b, List<Dictionary<string, int?>>[] c) { Spin(); sink++; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Own<T>(T a) { Spin(); sink++; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Own<T, U>(T a, U b) { Spin(); sink++; }

    class Box<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public void Put(T a) { Spin(); sink++; }

        public struct Inner<U>
        {
            [MethodImpl(MethodImplOptions.NoInlining)]
            public void Run() { Spin(); sink++; }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public void Both<V>(V a) { Spin(); sink++; }
    }

    // Compared by the precompiled sort of the class library.
    struct Key : IComparable<Key>
    {
        public int N;
        [MethodImpl(MethodImplOptions.NoInlining)]
        public int CompareTo(Key other) { if (N == 0 && other.N == 0) Spin(); return N - other.N; }
    }

    static void Main(string[] args)
    {
        end = Stopwatch.GetTimestamp() + Stopwatch.Frequency * int.Parse(args[0]);
        string s = "";
        var threads = new List<Thread>();
        foreach (var go in new ThreadStart[] {
            () => Over(), () => Over(1), () => Over(ref s, null, null),
            () => Own(1), () => Own(""), () => Own(1.5, new int[0]),
            () => new Box<int>().Put(1), () => new Box<string>().Put(""), () => new Box<KeyValuePair<string, int>>().Put(default(KeyValuePair<string, int>)),
            () => new Box<byte>.Inner<long>().Run(), () => new Box<object>().Both(2),
            () => Array.Sort(new Key[4]), () => new List<Key>(new Key[4]).Sort(),
        })
        {
            var t = new Thread(go);
            t.Start();
            threads.Add(t);
        }
        foreach (var t in threads) t.Join();
        Console.WriteLine("NAMES DONE");
    }
}
