// Known places: each prints the stack that the runtime itself gives of it, leaf first,
// and throws there.
// Usage: Places.exe TIMES [wait]
// With wait it prints "done" and ends when its standard input has a line.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Text;

static class Places
{
    interface IPlace { void Here(int depth); }

    // Methods of Environment.StackTrace's text, without parameters: "   at Type.Method(...)".
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Place()
    {
        var line = new StringBuilder();
        foreach (var l in Environment.StackTrace.Split('\n'))
        {
            var t = l.Trim();
            if (!t.StartsWith("at Places")) continue;
            if (line.Length > 0) line.Append(';');
            line.Append(t.Substring(3, t.IndexOf('(') - 3));
        }
        Console.WriteLine(line);
        throw new InvalidOperationException();
    }

    class Deep : IPlace
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public void Here(int depth) { if (depth > 0) Here(depth - 1); else Place(); }
    }

    class Static : IPlace
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public void Here(int depth) { Nested.Inner.Call(depth); }
    }

    static class Nested
    {
        public static class Inner
        {
            [MethodImpl(MethodImplOptions.NoInlining)]
            public static void Call(int depth) { Place(); }
        }
    }

    class Finally : IPlace
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public void Here(int depth) { try { Place(); } finally { Use(depth); } }
        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Use(int n) { }
    }

    class Delegated : IPlace
    {
        readonly Action<int> f = Direct;
        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Direct(int depth) { Place(); }
        [MethodImpl(MethodImplOptions.NoInlining)]
        public void Here(int depth) { f(depth); }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Try(IPlace p, int depth)
    {
        try { p.Here(depth); } catch (InvalidOperationException) { return true; }
        return false;
    }

    static int Main(string[] args)
    {
        int thrown = 0, times = int.Parse(args[0]);
        var places = new IPlace[] { new Deep(), new Static(), new Finally(), new Delegated() };
        for (int i = 0; i < times; i++)
            foreach (var p in places)
                if (Try(p, i % 30)) thrown++;
        if (args.Length > 1)
        {
            Console.WriteLine("done");
            Console.ReadLine();
        }
        return thrown == times * places.Length ? 42 : 1;
    }
}
