// Threads that live for an instant, as many as the machine makes: what a sampler
// that walks a thread which is just ending must survive.
// Usage: Churn.exe [SECONDS]; prints how many threads there were.
using System;
using System.Threading;

static class Churn
{
    // Many chains get more of a busy machine's time; small stacks are soon made.
    const int Chains = 24, Stack = 1 << 16;

    static DateTime end;
    static int made, running = Chains;
    static volatile int sink;

    static int Main(string[] args)
    {
        double seconds = args.Length > 0 ? double.Parse(args[0]) : 8;
        end = DateTime.UtcNow.AddSeconds(seconds);
        for (int i = 0; i < Chains; i++) new Thread(Live, Stack).Start();
        while (Volatile.Read(ref running) > 0) Thread.Sleep(50);
        Console.WriteLine("churn: " + made + " threads");
        return 0;
    }

    // Each thread starts the next: nobody waits for the end of one.
    static void Live()
    {
        Interlocked.Increment(ref made);
        for (int i = 0; i < 200; i++) sink += i;
        if (DateTime.UtcNow < end) new Thread(Live, Stack).Start();
        else Interlocked.Decrement(ref running);
    }
}
