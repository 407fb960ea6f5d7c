// Code that the runtime frees, and whose addresses other code then takes: three dynamic methods, three emitted
// assemblies, and three loaded ones, in turn. Each method computes for as long as its letter says, and the
// program prints the time of each by the thread's own clock, in milliseconds.
using System;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Runtime.Loader;

public static class Reused
{
    [StructLayout(LayoutKind.Sequential)]
    struct Time { public long Seconds, Nanoseconds; }

    [DllImport("libc")]
    static extern int clock_gettime(int clock, out Time t);

    static double Used()
    {
        clock_gettime(3, out var t); // CLOCK_THREAD_CPUTIME_ID
        return t.Seconds * 1e3 + t.Nanoseconds / 1e6;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static double Work(int ms)
    {
        double x = 1, end = Used() + ms;
        while (Used() < end)
            for (int i = 0; i < 20000; i++)
                x = x * 1.0000001 + 0.5 / (x + 1);
        return x;
    }

    // Body writes the method: more instructions before the call for later letters.
    static void Body(ILGenerator il, int letter)
    {
        for (int i = 0; i < letter; i++) { il.Emit(OpCodes.Ldc_I4_1); il.Emit(OpCodes.Pop); }
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, typeof(Reused).GetMethod("Work"));
        il.Emit(OpCodes.Ldc_R8, 1.0);
        il.Emit(OpCodes.Add); // no tail call
        il.Emit(OpCodes.Ret);
    }

    // Define makes a type with two methods, of which the second is used. The methods of another type come between them.
    static void Define(ModuleBuilder module, string name, int letter)
    {
        var type = module.DefineType(name, TypeAttributes.Public | TypeAttributes.Class);
        var other = module.DefineType("Other" + name, TypeAttributes.Public | TypeAttributes.Class);
        foreach (var (t, m) in new[] { (type, "First"), (other, "Run"), (type, "Run") })
            Body(t.DefineMethod(m, MethodAttributes.Public | MethodAttributes.Static, typeof(double), new[] { typeof(int) }).GetILGenerator(), letter);
        other.CreateType();
        type.CreateType();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static Func<int, double> Dynamic(int letter)
    {
        var m = new DynamicMethod("Dynamic" + "ABC"[letter], typeof(double), new[] { typeof(int) }, typeof(Reused).Module, true);
        Body(m.GetILGenerator(), letter);
        return m.CreateDelegate<Func<int, double>>();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static Func<int, double> Emitted(int letter)
    {
        var name = "Emitted" + "ABC"[letter];
        var assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Asm"), AssemblyBuilderAccess.RunAndCollect);
        Define(assembly.DefineDynamicModule("Mod"), name, letter);
        return assembly.GetType(name).GetMethod("Run").CreateDelegate<Func<int, double>>();
    }

    static readonly Dictionary<int, byte[]> files = new();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static Func<int, double> Loaded(int letter)
    {
        var name = "Loaded" + "ABC"[letter];
        if (!files.TryGetValue(letter, out var file))
        {
            var assembly = new PersistedAssemblyBuilder(new AssemblyName("Plugin"), typeof(object).Assembly);
            Define(assembly.DefineDynamicModule("Mod"), name, letter);
            var stream = new MemoryStream();
            assembly.Save(stream);
            files[letter] = file = stream.ToArray();
        }
        var context = new AssemblyLoadContext("plugin", true);
        var type = context.LoadFromStream(new MemoryStream(file)).GetType(name);
        context.Unload(); // as soon as nothing uses it
        return type.GetMethod("Run").CreateDelegate<Func<int, double>>();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Once(Func<int, Func<int, double>> make, int letter, int ms)
    {
        var run = make(letter);
        double began = Used();
        run(ms);
        return Used() - began;
    }

    public static void Main(string[] args)
    {
        int rounds = int.Parse(args[0]), ms = int.Parse(args[1]);
        foreach (var make in new Func<int, Func<int, double>>[] { Dynamic, Emitted, Loaded })
        {
            var sums = new double[3];
            for (int i = 0; i < rounds; i++)
                for (int letter = 0; letter < 3; letter++)
                {
                    sums[letter] += Once(make, letter, ms);
                    for (int k = 0; k < 2; k++) { GC.Collect(); GC.WaitForPendingFinalizers(); }
                }
            for (int letter = 0; letter < 3; letter++)
                Console.WriteLine($"{make.Method.Name}{"ABC"[letter]} {sums[letter]:F0}");
        }
        Console.WriteLine("REUSED DONE");
    }
}
