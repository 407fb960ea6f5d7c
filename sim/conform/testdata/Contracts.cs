// The places from which contracts.c asks: this program brings its profiler there.
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

static class Contracts
{
    [DllImport("contracts")] static extern void contracts_arm(int place);
    [DllImport("contracts")] static extern void contracts_pinvoke();
    [DllImport("contracts")] static extern void contracts_native();
    [DllImport("contracts")] static extern void contracts_owner();
    [DllImport("contracts")] static extern void contracts_end();

    // As in contracts.c.
    const int Triggers = 3, NoTrigger = 4, Collecting = 5;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Fresh(int n) { return n + 1; }

    static int Main()
    {
        GC.Collect(); // some of what is asked wants to have seen one
        contracts_pinvoke();
        contracts_native();
        contracts_arm(Triggers);
        Fresh(1);
        contracts_arm(NoTrigger);
        GC.Collect();
        contracts_arm(Collecting);
        GC.Collect();
        contracts_owner();
        contracts_end();
        return 0;
    }
}
