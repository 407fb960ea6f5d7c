// A fixed amount of mixed work on four threads, for the overhead of sampling.
// Usage: Bench.exe [ROUNDS]
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;

static class Bench
{
    static int rounds = 200;
    static long sum;

    static int Main(string[] args)
    {
        if (args.Length > 0) rounds = int.Parse(args[0]);
        var threads = new List<Thread>();
        foreach (var work in new ThreadStart[] { Recursion, Allocation, Sorting, Strings })
        {
            var t = new Thread(work);
            t.Start();
            threads.Add(t);
        }
        foreach (var t in threads) t.Join();
        Console.WriteLine("bench: " + sum);
        return 0;
    }

    static void Add(long n) { Interlocked.Add(ref sum, n); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }

    static void Recursion() { for (int i = 0; i < rounds; i++) Add(Fibonacci(27)); }

    static void Allocation()
    {
        for (int i = 0; i < rounds * 20; i++)
        {
            var list = new List<object>();
            for (int k = 0; k < 5000; k++) list.Add(new int[4]);
            Add(list.Count);
        }
    }

    static void Sorting()
    {
        var random = new Random(7);
        for (int i = 0; i < rounds; i++)
        {
            var a = new int[60000];
            for (int k = 0; k < a.Length; k++) a[k] = random.Next();
            Array.Sort(a, (x, y) => x.CompareTo(y));
            Add(a[0] % 1000);
        }
    }

    static void Strings()
    {
        for (int i = 0; i < rounds * 20; i++)
        {
            string s = "";
            for (int k = 0; k < 300; k++) s += (char)('a' + k % 26);
            Add(s.GetHashCode() == 0 ? 0 : s.Length);
        }
    }
}
