// Threads that live for an instant, as many as the machine makes: what a sampler
// that walks a thread which is just ending must survive.
// Usage: Churn.exe [SECONDS]; prints how many threads there were.
using System;
using System.Threading;

static class Churn
{
    // Many makers get more of a busy machine's time; small stacks are soon made.
    const int Makers = 8, Together = 4, Stack = 1 << 16;

    static DateTime end;
    static int made;
    static volatile int sink;

    static int Main(string[] args)
    {
        double seconds = args.Length > 0 ? double.Parse(args[0]) : 8;
        end = DateTime.UtcNow.AddSeconds(seconds);
        var makers = new Thread[Makers];
        for (int i = 0; i < makers.Length; i++)
        {
            makers[i] = new Thread(Make, Stack);
            makers[i].Start();
        }
        foreach (var t in makers) t.Join();
        Console.WriteLine("churn: " + made + " threads");
        return 0;
    }

    static void Make()
    {
        while (DateTime.UtcNow < end)
        {
            var threads = new Thread[Together];
            for (int i = 0; i < threads.Length; i++)
            {
                threads[i] = new Thread(Live, Stack);
                threads[i].Start();
            }
            foreach (var t in threads) t.Join();
            Interlocked.Add(ref made, threads.Length);
        }
    }

    static void Live() { for (int i = 0; i < 200; i++) sink += i; }
}
