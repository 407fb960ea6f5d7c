// A current C# compiler: Csc.exe OUT.exe SOURCE.cs [-debug] [-pdb] REFERENCE.dll...
// -pdb writes a Portable PDB beside OUT.exe.
//
// Roslyn's assemblies are called by reflection, since mcs, which compiles this file, cannot
// read them.
using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;

public static class Csc
{
	static readonly Assembly Common = Assembly.Load("Microsoft.CodeAnalysis"), CSharp = Assembly.Load("Microsoft.CodeAnalysis.CSharp");

	static Type Named(string name)
	{
		return Common.GetType("Microsoft.CodeAnalysis." + name) ?? CSharp.GetType("Microsoft.CodeAnalysis.CSharp." + name);
	}

	static object Value(string type, string name) { return Enum.Parse(Named(type), name); }

	// Arguments by name; the others are optional.
	static bool Fits(MethodBase m, Dictionary<string, object> given)
	{
		var all = m.GetParameters();
		return given.Keys.All(name => all.Any(p => p.Name == name && (given[name] == null || p.ParameterType.IsInstanceOfType(given[name])))) &&
			all.All(p => p.HasDefaultValue || given.ContainsKey(p.Name));
	}

	static object[] Arguments(MethodBase m, Dictionary<string, object> given)
	{
		return m.GetParameters().Select(p => given.ContainsKey(p.Name) ? given[p.Name] :
			p.DefaultValue == null && p.ParameterType.IsValueType ? Activator.CreateInstance(p.ParameterType) : p.DefaultValue).ToArray();
	}

	static object New(string type, Dictionary<string, object> given)
	{
		var c = Named(type).GetConstructors().First(x => Fits(x, given));
		return c.Invoke(Arguments(c, given));
	}

	static object Call(object on, string type, string method, Dictionary<string, object> given)
	{
		var m = Named(type).GetMethods().First(x => x.Name == method && Fits(x, given));
		return m.Invoke(on, Arguments(m, given));
	}

	static Array Of(string type, params object[] items)
	{
		var a = Array.CreateInstance(Named(type), items.Length);
		items.CopyTo(a, 0);
		return a;
	}

	static object Compilation(string output, string source, bool debug, IEnumerable<string> references)
	{
		var parse = New("CSharpParseOptions", new Dictionary<string, object> { { "languageVersion", Value("LanguageVersion", "Latest") } });
		var tree = Call(null, "CSharpSyntaxTree", "ParseText", new Dictionary<string, object> { { "text", File.ReadAllText(source) }, { "options", parse }, { "path", source }, { "encoding", System.Text.Encoding.UTF8 } });
		var metadata = references.Select(path => Call(null, "MetadataReference", "CreateFromFile", new Dictionary<string, object> { { "path", path } })).ToArray();
		var options = New("CSharpCompilationOptions", new Dictionary<string, object> {
			{ "outputKind", Value("OutputKind", "ConsoleApplication") }, { "optimizationLevel", Value("OptimizationLevel", debug ? "Debug" : "Release") },
			{ "allowUnsafe", true }, { "deterministic", true } });
		return Call(null, "CSharpCompilation", "Create", new Dictionary<string, object> {
			{ "assemblyName", Path.GetFileNameWithoutExtension(output) }, { "syntaxTrees", Of("SyntaxTree", tree) }, { "references", Of("MetadataReference", metadata) }, { "options", options } });
	}

	public static int Main(string[] args)
	{
		var compilation = Compilation(args[0], args[1], args.Contains("-debug"), args.Skip(2).Where(a => a[0] != '-'));
		object result;
		var options = New("Emit.EmitOptions", new Dictionary<string, object> { { "debugInformationFormat", Value("Emit.DebugInformationFormat", "PortablePdb") } });
		using (var file = File.Create(args[0]))
		using (var pdb = args.Contains("-pdb") ? File.Create(Path.ChangeExtension(args[0], ".pdb")) : null)
			result = Call(compilation, "Compilation", "Emit", new Dictionary<string, object> { { "peStream", file }, { "pdbStream", pdb }, { "options", options } });
		if ((bool)result.GetType().GetProperty("Success").GetValue(result))
			return 0;
		File.Delete(args[0]);
		foreach (var d in (IEnumerable)result.GetType().GetProperty("Diagnostics").GetValue(result))
			if (d.ToString().Contains("error"))
				Console.Error.WriteLine(d);
		return 1;
	}
}
