// A fixed amount of work, and what it took: wall time and the process's own
// processor time, by the kernel's clocks. With a FILE the work goes on until the
// standard input ends, and each thread that works counts its units in the file, in
// a word on a cache line of its own.
// Usage: Cost.exe cpu|allocate|server|idle AMOUNT
//        Cost.exe cpu|allocate|server FILE
using System;
using System.Collections.Generic;
using System.Net;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

static unsafe class Cost
{
    [DllImport("libc")] static extern int clock_gettime(int clock, long[] time);
    [DllImport("libc")] static extern int open(string path, int flags);
    [DllImport("libc")] static extern IntPtr mmap(IntPtr at, IntPtr size, int protection, int flags, int file, IntPtr offset);
    [DllImport("libc")] static extern IntPtr read(int file, byte* to, IntPtr size);

    const int Room = 4096, Line = 64; // of the file, and what a thread has of it

    static byte* units = (byte*)Marshal.AllocHGlobal(Room);
    static int counting;

    static double sink;
    static object keep;

    static double Clock(int clock)
    {
        var t = new long[2];
        clock_gettime(clock, t);
        return t[0] + t[1] / 1e9;
    }

    static int Main(string[] args)
    {
        var work = new Dictionary<string, Action<int>> { { "cpu", Cpu }, { "allocate", Allocate }, { "server", Server }, { "idle", Idle } }[args[0]];
        int amount;
        if (!int.TryParse(args[1], out amount)) return Endless(work, args[1]);
        if (args[0] != "idle") work(Math.Max(1, amount / 10)); // what is compiled at first use is not measured
        double wall = Clock(1), cpu = Clock(2);
        work(amount);
        Console.WriteLine("wall " + (Clock(1) - wall).ToString("F6") + " cpu " + (Clock(2) - cpu).ToString("F6") + " all " + Clock(2).ToString("F6"));
        return 0;
    }

    static int Endless(Action<int> work, string path)
    {
        const int readWrite = 2, readable = 1, writable = 2, shared = 1;
        IntPtr map = mmap(IntPtr.Zero, (IntPtr)Room, readable | writable, shared, open(path, readWrite), IntPtr.Zero);
        if (map == (IntPtr)(-1)) return 1;
        units = (byte*)map;
        new Thread(() => work(int.MaxValue)) { IsBackground = true }.Start();
        byte b;
        while (read(0, &b, (IntPtr)1) != IntPtr.Zero) { } // nothing is ever sent; a signal interrupts it
        Environment.Exit(0);
        return 0;
    }

    // Where a thread counts what it has done.
    static long* Counter() { return (long*)(units + Interlocked.Increment(ref counting) % (Room / Line) * Line); }

    static void Two(ThreadStart body)
    {
        var a = new Thread(body);
        var b = new Thread(body);
        a.Start(); b.Start();
        a.Join(); b.Join();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Straight(double x) { return x * 0.5 + 1 / (x * x + 1); }

    static void Cpu(int n)
    {
        Two(() =>
        {
            long* done = Counter();
            double x = 0;
            for (int i = 0; i < n; i++, ++*done)
            {
                x += Fibonacci(20);
                for (int k = 0; k < 10000; k++) x = Straight(x);
            }
            sink = x;
        });
    }

    static void Allocate(int n)
    {
        Two(() =>
        {
            long* done = Counter();
            for (int i = 0; i < n; i++, ++*done)
            {
                var list = new List<object>();
                for (int k = 0; k < 2000; k++) list.Add(new int[k & 15]);
                keep = list;
            }
        });
    }

    // Two clients and their two threads of a server: requests of 64 bytes, each
    // parsed, answered with something allocated.
    static void Server(int n)
    {
        var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        var accept = new Thread(() =>
        {
            for (int i = 0; i < 2; i++)
            {
                var socket = listener.AcceptSocket();
                new Thread(() => Serve(socket)).Start();
            }
        });
        accept.Start();
        int port = ((IPEndPoint)listener.LocalEndpoint).Port;
        Two(() => Ask(port, n));
        accept.Join();
        listener.Stop();
    }

    static bool Receive(Socket s, byte[] b)
    {
        for (int at = 0; at < b.Length; )
        {
            int n = s.Receive(b, at, b.Length - at, SocketFlags.None);
            if (n <= 0) return false;
            at += n;
        }
        return true;
    }

    static void Serve(Socket s)
    {
        var request = new byte[64];
        while (Receive(s, request))
        {
            var words = new List<string>();
            for (int i = 0; i < request.Length; i++) words.Add(request[i].ToString());
            string text = string.Join(",", words.ToArray());
            var answer = new byte[64];
            answer[0] = (byte)text.Length;
            s.Send(answer);
        }
        s.Close();
    }

    static void Ask(int port, int n)
    {
        var s = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        s.Connect(IPAddress.Loopback, port);
        var request = new byte[64];
        var answer = new byte[64];
        long* done = Counter();
        for (int i = 0; i < n; i++, ++*done)
        {
            request[i & 63]++;
            s.Send(request);
            Receive(s, answer);
        }
        s.Close();
    }

    // A thousand threads that wait.
    static void Idle(int n)
    {
        var threads = new List<Thread>();
        for (int i = 0; i < 1000; i++)
        {
            var t = new Thread(() => Thread.Sleep(n), 1 << 16);
            t.Start();
            threads.Add(t);
        }
        foreach (var t in threads) t.Join();
    }
}
