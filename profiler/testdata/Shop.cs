// Shop.exe MILLISECONDS: most CPU time is in a native library, which calls back.
using System;
using System.Runtime.InteropServices;

static class Shop
{
	delegate uint Announce(uint sum);

	[DllImport("libSystem.Shop.Native")]
	static extern uint shop_open(int milliseconds, Announce announce);

	static uint Sold(uint sum) { for (int i = 0; i < 300; i++) sum = sum * 31 + 7; return sum; }

	static void Main(string[] args)
	{
		Announce announce = Sold;
		Console.WriteLine(shop_open(int.Parse(args[0]), announce) == 12 ? "none" : "SHOP DONE");
	}
}
