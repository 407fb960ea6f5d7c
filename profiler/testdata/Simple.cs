// The simplest programs: Main does one thing, so that next to nothing else is compiled.
using System;
using System.Runtime.InteropServices;
using System.Threading;

class Simple {
	[DllImport("simple")] static extern void compute(int milliseconds);
	[DllImport("simple")] static extern void on_fiber(int milliseconds);

	static int Main(string[] args) {
		int ms = 0;
		for (int i = 0; i < args[0].Length; i++) ms = ms * 10 + args[0][i] - '0'; // the compiler cannot load int.Parse of every runtime
#if LOOP
		int end = Environment.TickCount + ms, n = 0;
		while (Environment.TickCount - end < 0) for (int i = 0; i < 1000000; i++) n += i ^ n;
		return n == 1 ? 1 : 0;
#elif SLEEP
		Thread.Sleep(ms);
		return 0;
#elif NATIVE
		compute(ms);
		return 0;
#elif FIBER
		on_fiber(ms);
		return 0;
#endif
	}
}
