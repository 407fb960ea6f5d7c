// Places.exe pdb FILE.dll FILE.pdb: writes a Portable PDB in which each byte of the IL of method n has a line of
// its own, n * 4096 and its offset.
//
// Places.exe SAMPLES: a program that knows its places in the source. Each place calls a Burn of its own,
// told apart by a type argument, which prints the lines of the methods that called it, as the
// runtime's own stack traces have them. It uses SAMPLES milliseconds of CPU time.
//
// LINES S1 24 31 40 ... are the lines from the caller of Burn on outward, without those of methods that
// have none. Optimized code has other lines than code that is not: each new one is printed.
using System;
using System.Collections.Generic;
using System.Collections.Immutable;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;

struct S1 { } struct S2 { } struct S3 { } struct S4 { } struct S5 { } struct S6 { } struct S7 { } struct S8 { } struct S9 { }

static class Known<T>
{
	public static readonly HashSet<string> Lines = new HashSet<string>();
}

public static class Places
{
	static int sink;

	[MethodImpl(MethodImplOptions.NoInlining)]
	static int Burn<T>(int line = 0)
	{
		var trace = new StackTrace(1, true).GetFrames().Select(f => f.GetFileLineNumber()).Where(n => n > 0);
		string lines = line > 0 ? line.ToString() : string.Join(" ", trace);
		if (Known<T>.Lines.Add(lines))
			Console.WriteLine("LINES " + typeof(T).Name + " " + lines);
		int n = sink;
		for (long end = Stopwatch.GetTimestamp() + Stopwatch.Frequency / 200; Stopwatch.GetTimestamp() < end;)
			for (int i = 0; i < 1000; i++)
				n = n * 31 + i;
		return sink = n;
	}

	static int Here([CallerLineNumber] int line = 0) => line;

	[MethodImpl(MethodImplOptions.NoInlining)]
	static int Sync(int depth)
	{
		if (depth > 0)
			return Sync(depth - 1)
				+ 1;
		int n = Burn<S1>();
		n += Burn<S2>() +
			Burn<S3>();
		try
		{
			throw new InvalidOperationException();
		}
		catch (InvalidOperationException)
		{
			n += Burn<S4>(Here()); // the runtime says where the exception was thrown
		}
		return n;
	}

	static async Task<int> Async(int depth)
	{
		if (depth > 0)
			return await Async(depth - 1);
		int n = Burn<S5>();
		await Task.Yield();
		n += Burn<S6>();
		await foreach (int i in Numbers())
			n += i;
		return n;
	}

	static async IAsyncEnumerable<int> Numbers()
	{
		yield return 1;
		await Task.Yield();
		yield return
			Burn<S7>();
	}

	// Precompiled methods of the class library call the places.
	[MethodImpl(MethodImplOptions.NoInlining)]
	static int Library()
	{
		int n = Enumerable.Range(0, 3).Where(i => i == 1).Select(i => i + Burn<S8>()).Sum();
		return n + new[] { 3, 1 }.OrderBy(i => i).Aggregate((a, b) =>
			a + Burn<S9>());
	}

	static void WritePdb(string dll, string pdb)
	{
		using var pe = new PEReader(File.OpenRead(dll));
		MetadataReader md = pe.GetMetadataReader();
		var to = new MetadataBuilder();
		var document = to.AddDocument(to.GetOrAddDocumentName("/library/All.cs"), default, default, default);
		foreach (var handle in md.MethodDefinitions)
		{
			int rva = md.GetMethodDefinition(handle).RelativeVirtualAddress, row = MetadataTokens.GetRowNumber(handle);
			int size = rva == 0 ? 0 : Math.Min(pe.GetMethodBody(rva).GetILReader().Length, 4096);
			var points = new BlobBuilder();
			points.WriteCompressedInteger(0); // no local variables
			for (int il = 0; il < size; il++)
			{
				points.WriteCompressedInteger(il == 0 ? 0 : 1);
				points.WriteCompressedInteger(0);
				points.WriteCompressedInteger(1);
				if (il == 0)
				{
					points.WriteCompressedInteger(row * 4096);
					points.WriteCompressedInteger(1);
					continue;
				}
				points.WriteCompressedSignedInteger(1);
				points.WriteCompressedSignedInteger(0);
			}
			to.AddMethodDebugInformation(size == 0 ? default : document, size == 0 ? default : to.GetOrAddBlob(points));
		}
		var entry = pe.ReadDebugDirectory().First(e => e.Type == DebugDirectoryEntryType.CodeView);
		var id = new BlobContentId(pe.ReadCodeViewDebugDirectoryData(entry).Guid, entry.Stamp);
		var rows = Enumerable.Range(0, MetadataTokens.TableCount).Select(i => i < 0x30 ? md.GetTableRowCount((TableIndex)i) : 0);
		var all = new BlobBuilder();
		new PortablePdbBuilder(to, rows.ToImmutableArray(), default, _ => id).Serialize(all);
		File.WriteAllBytes(pdb, all.ToArray());
	}

	public static async Task Main(string[] args)
	{
		if (args[0] == "pdb")
		{
			WritePdb(args[1], args[2]);
			return;
		}
		var process = Process.GetCurrentProcess();
		while (process.TotalProcessorTime.TotalMilliseconds < int.Parse(args[0]))
		{
			Sync(3);
			await Async(2);
			Library();
			process.Refresh();
		}
		Console.WriteLine("PLACES DONE");
	}
}
