// Many threads that sleep: Many.exe N. It says "ready" when all have started, and ends with
// its input.
using System;
using System.Threading;

static class Many
{
    static void Sleeper() { Nap(); }

    static void Nap() { Thread.Sleep(Timeout.Infinite); }

    static void Main(string[] args)
    {
        for (int i = 0; i < int.Parse(args[0]); i++)
            new Thread(Sleeper, 1 << 17) { IsBackground = true }.Start();
        Console.WriteLine("ready");
        Console.In.Read();
        Environment.Exit(0);
    }
}
