// Where misuse.c breaks rules: a managed thread, a thread that has ended, a
// collection.
using System;
using System.Runtime.InteropServices;
using System.Threading;

static class Misuse
{
    [DllImport("misuse")] static extern void misuse_managed();
    [DllImport("misuse")] static extern void misuse_native();
    [DllImport("misuse")] static extern void misuse_proper();
    [DllImport("misuse")] static extern void misuse_target();
    [DllImport("misuse")] static extern void misuse_arm(int on);
    [DllImport("misuse")] static extern int misuse_gone();
    [DllImport("misuse")] static extern void misuse_end();

    static volatile bool ready, over;

    static void Target()
    {
        misuse_target();
        ready = true;
        while (!over) Thread.Sleep(1);
    }

    static int Main()
    {
        Thread t = new Thread(Target);
        t.Start();
        while (!ready) Thread.Sleep(1);
        misuse_proper();
        misuse_managed();
        misuse_native();
        misuse_arm(1);
        for (int i = 0; i < 200 && misuse_gone() == 0; i++)
        {
            Thread gone = new Thread(delegate() { });
            gone.Start();
            gone.Join();
            gone = null;
            Thread.Sleep(5);
        }
        misuse_arm(2);
        GC.Collect();
        over = true;
        t.Join();
        misuse_end();
        return 0;
    }
}
