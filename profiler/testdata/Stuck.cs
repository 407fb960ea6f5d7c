// Programs that hang in locks of the core library, for seedwalk hang and stack:
//
//     Stuck.exe MODE
using System;
using System.Collections.Generic;
using System.Threading;

public static class Stuck
{
	static readonly Lock A = new(), B = new();
	static readonly ReaderWriterLockSlim R = new(), S = new();
	static readonly object M = new();
	static readonly CountdownEvent begun = new(2);

	static void Start(string name, Action first, Action second) => new Thread(() =>
	{
		first();
		if (!begun.IsSet) begun.Signal();
		begun.Wait();
		second();
	}) { Name = name, IsBackground = true }.Start();

	static void Both(Action x, Action y)
	{
		Start("one", x, y);
		Start("two", y, x);
	}

	static readonly Dictionary<string, Action> modes = new()
	{
		["locks"] = () => Both(A.Enter, B.Enter),
		["writers"] = () => Both(R.EnterWriteLock, S.EnterWriteLock),
		["reader-of-writer"] = () => { Start("one", R.EnterWriteLock, S.EnterReadLock); Start("two", S.EnterWriteLock, R.EnterReadLock); },
		["mixed"] = () => Both(A.Enter, () => Monitor.Enter(M)),
		["lock-and-writer"] = () => Both(A.Enter, R.EnterWriteLock),
		["lock-of-ended"] = () => { var t = new Thread(A.Enter); t.Start(); t.Join(); Start("one", () => { }, A.Enter); Start("two", () => { }, A.Enter); },
		["upgraders"] = () => Both(R.EnterUpgradeableReadLock, S.EnterUpgradeableReadLock),
	};

	public static void Main(string[] args)
	{
		modes[args[0]]();
		begun.Wait();
		Thread.Sleep(300);
		Console.WriteLine("ready");
		Console.ReadLine();
	}
}
