// A program in a bad state that lasts: it ends by an exception that nobody catches, or
// it does nothing but collect.
// Usage: Ending.exe handled|unhandled|collecting|failfast
// "handled" sleeps in the handler of unhandled exceptions. Each says a line when it is
// in that state, or on the way there.
using System;
using System.Runtime.CompilerServices;
using System.Threading;

static class Ending
{
    sealed class Node { public Node Left, Right; }
    static Node kept;

    static void Main(string[] args)
    {
        if (args[0] == "collecting") Collecting();
        if (args[0] == "failfast") Environment.FailFast("the state is bad: " + args[0], new Exception("a cause"));
        if (args[0] == "handled") AppDomain.CurrentDomain.UnhandledException += Handler;
        var other = new Thread(Outer) { Name = "ends" };
        other.Start();
        other.Join();
    }

    static void Handler(object sender, UnhandledExceptionEventArgs e)
    {
        Console.WriteLine("handling");
        Thread.Sleep(Timeout.Infinite);
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static void Outer() { Middle(args => Inner(args), 3); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Middle(Action<int> call, int n) { try { call(n); } finally { GC.KeepAlive(call); } }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Inner(int n) { if (n > 0) { Inner(n - 1); return; } throw new InvalidOperationException("the end"); }

    // A heap that takes long to mark, collected again and again by one thread while
    // others work.
    static void Collecting()
    {
        kept = Tree(20);
        for (int i = 0; i < 3; i++) new Thread(Work) { IsBackground = true }.Start();
        Console.WriteLine("collecting");
        while (true) GC.Collect();
    }

    static Node Tree(int deep) { return deep == 0 ? new Node() : new Node { Left = Tree(deep - 1), Right = Tree(deep - 1) }; }

    static volatile object made;
    [MethodImpl(MethodImplOptions.NoInlining)] static void Work() { for (int i = 0; ; i++) made = new byte[100 + i % 100]; }
}
