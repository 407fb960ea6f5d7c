// An F# compiler: Fsc.exe ARGUMENTS. The assemblies of the compiler are called by reflection, since
// mcs, which compiles this file, cannot read them.
using System;
using System.Linq;
using System.Reflection;

public static class Fsc
{
	public static int Main(string[] args)
	{
		var type = Assembly.Load("FSharp.Compiler.Service").GetType("FSharp.Compiler.SourceCodeServices.FSharpChecker");
		var create = type.GetMethod("Create");
		var checker = create.Invoke(null, new object[create.GetParameters().Length]);
		var compile = type.GetMethods().First(m => m.Name == "Compile" && m.GetParameters().Length == 2);
		var work = compile.Invoke(checker, new object[] { new[] { "fsc" }.Concat(args).ToArray(), null });
		var run = Assembly.Load("FSharp.Core").GetType("Microsoft.FSharp.Control.FSharpAsync").GetMethod("RunSynchronously");
		var result = run.MakeGenericMethod(work.GetType().GetGenericArguments()).Invoke(null, new object[] { work, null, null });
		foreach (var error in (Array)result.GetType().GetProperty("Item1").GetValue(result, null))
			Console.Error.WriteLine(error);
		return (int)result.GetType().GetProperty("Item2").GetValue(result, null);
	}
}
