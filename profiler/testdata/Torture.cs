// Threads that take the process's locks without end, in native code and through
// the CLR: what a sampler that needs one of them while a thread is suspended waits
// for until the end of days.
// Usage: Torture.exe [SECONDS [KIND]]; what it prints does not depend on the machine.
// How often each lock was taken stands on the standard error stream.
using System;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

static class Torture
{
    [DllImport("torture")] static extern int torture_heap(int ms, byte mark);
    [DllImport("torture", CharSet = CharSet.Ansi)] static extern int torture_loader(int ms, string library, string function);
    [DllImport("torture", CharSet = CharSet.Ansi)] static extern int torture_environment(int ms, string name);
    [DllImport("torture")] static extern int torture_tables(int ms);

    const int Ms = 5; // of native work between two visits to managed code

    sealed class Work
    {
        public string Name;
        public Func<int, int> Once; // by a thread's number; negative: it came out wrong
        public long Done;
        public int Wrong;
    }

    static DateTime end;

    static int Main(string[] args)
    {
        double seconds = args.Length > 0 ? double.Parse(args[0]) : 8;
        end = DateTime.UtcNow.AddSeconds(seconds);
        var work = new[] {
            new Work { Name = "heap", Once = Heap }, new Work { Name = "loader", Once = Loader },
            new Work { Name = "environment", Once = Environ }, new Work { Name = "tables", Once = Tables },
            new Work { Name = "collections", Once = Collect }, new Work { Name = "compiler", Once = Compile },
        };
        if (args.Length > 1) work = Array.FindAll(work, w => w.Name == args[1]);
        var threads = new List<Thread>();
        for (int i = 0; i < 2 * work.Length; i++)
        {
            Work w = work[i / 2];
            int number = i;
            threads.Add(new Thread(() => Run(w, number)));
        }
        foreach (var t in threads) t.Start();
        foreach (var t in threads) t.Join();
        int wrong = 0;
        foreach (var w in work)
        {
            Console.Error.WriteLine("torture: " + w.Name + " " + w.Done);
            if (w.Wrong != 0 || w.Done == 0)
            {
                Console.WriteLine("torture: " + w.Name + " came out wrong: " + w.Wrong);
                wrong++;
            }
        }
        Console.WriteLine("torture: " + work.Length + " kinds of work, " + wrong + " wrong");
        return wrong == 0 ? 7 : 1;
    }

    static void Run(Work w, int number)
    {
        while (DateTime.UtcNow < end && w.Wrong == 0)
        {
            int n = w.Once(number);
            if (n < 0) w.Wrong = n;
            else Interlocked.Add(ref w.Done, n);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Heap(int number)
    {
        IntPtr p = Marshal.AllocHGlobal(100000);
        Marshal.WriteByte(p, 99999, (byte)number);
        int n = torture_heap(Ms, (byte)(number + 1));
        bool kept = Marshal.ReadByte(p, 99999) == number;
        Marshal.FreeHGlobal(p);
        return kept ? n : -9;
    }

    static readonly string library = Path.Combine(AppContext.BaseDirectory, "demo.dll");

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Loader(int number) { return torture_loader(Ms, library, "demo_checksum"); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Environ(int number)
    {
        string name = "TORTURE" + number;
        Environment.SetEnvironmentVariable(name, "x" + number);
        if (Environment.GetEnvironmentVariable(name) != "x" + number) return -9;
        return torture_environment(Ms, name);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Tables(int number) { return torture_tables(Ms); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Collect(int number)
    {
        var kept = new List<byte[]>();
        for (int i = 0; i < 500; i++) kept.Add(new byte[1000 + number]);
        GC.Collect(number % 2);
        Thread.Sleep(1);
        return kept.Count == 500 && kept[499].Length == 1000 + number ? 1 : -1;
    }

    // A new method each time: the JIT compiler and the code heap.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Compile(int number)
    {
        var m = new DynamicMethod("Made", typeof(int), new[] { typeof(int) }, typeof(Torture).Module);
        var il = m.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        for (int k = 0; k < 20; k++)
        {
            il.Emit(OpCodes.Ldc_I4, k);
            il.Emit(OpCodes.Add);
        }
        il.Emit(OpCodes.Ret);
        return ((Func<int, int>)m.CreateDelegate(typeof(Func<int, int>)))(number) == number + 190 ? 1 : -1;
    }
}
