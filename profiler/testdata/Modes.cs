// What a library with another runtime in it may have changed in the process, asked
// by P/Invoke: at the start of Main, and after a while.
using System;
using System.Runtime.InteropServices;
using System.Threading;

static class Modes
{
    [DllImport("kernel32")] static extern uint GetErrorMode();
    [DllImport("kernel32")] static extern IntPtr GetCurrentProcess();
    [DllImport("kernel32")] static extern bool GetProcessPriorityBoost(IntPtr process, out bool disabled);
    [DllImport("kernel32")] static extern int WerGetFlags(IntPtr process, out uint flags);
    [DllImport("ntdll")] static extern IntPtr RtlGetCurrentPeb();

    static string Now()
    {
        bool off;
        uint flags = 0;
        string boost = GetProcessPriorityBoost(GetCurrentProcess(), out off) ? off.ToString() : "unknown", wer;
        try { wer = WerGetFlags(GetCurrentProcess(), out flags) >= 0 ? flags.ToString() : "unknown"; }
        catch (EntryPointNotFoundException) { wer = "none"; }
        return "error mode " + GetErrorMode().ToString("x") + ", boost off " + boost + ", WER " + wer
            + ", long paths " + (Marshal.ReadByte(RtlGetCurrentPeb(), 3) >> 7);
    }

    static int Main()
    {
        Console.WriteLine("start: " + Now());
        Thread.Sleep(1000);
        Console.WriteLine("later: " + Now());
        return 0;
    }
}
