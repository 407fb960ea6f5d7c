// Writes a program whose instructions come from lines that are known, with its Portable PDB
// in a file beside it or within it, by the class library's own writers.
// Usage: Lines.exe FILE file|embedded NAME
//
// The program prints Environment.StackTrace and runs for as many milliseconds as it is told,
// each at a known line of Lines.cs: Main calls Over (line 11), Over calls Deep (line 22),
// Deep prints (line 33) and sleeps again and again (line 36 or 37).
//
// The compiler knows the class library of another runtime: what that lacks is asked for by
// name.
using System;
using System.Diagnostics.SymbolStore;
using System.IO;
using System.Reflection;
using System.Reflection.Emit;

static class Lines
{
    static readonly Guid csharp = new Guid("3f5162f8-07c6-11d3-9053-00c04fa302a1");

    static void Main(string[] args)
    {
        object assembly = New("System.Reflection.Emit.PersistedAssemblyBuilder, System.Reflection.Emit", new AssemblyName(args[2]), typeof(object).Assembly, null);
        ModuleBuilder module = ((AssemblyBuilder)assembly).DefineDynamicModule(args[2]);
        var one = (ISymbolDocumentWriter)Call(module, "DefineDocument", "/src/app/Lines.cs", csharp);
        TypeBuilder type = module.DefineType("App.Lines", TypeAttributes.Public | TypeAttributes.Class);
        MethodBuilder deep = Deep(type, one), over = Over(type, one, deep), main = Start(type, one, over);
        type.CreateType();
        Write(assembly, main, args[0], args[1] == "embedded");
        Console.WriteLine("WRITTEN");
    }

    static MethodBuilder Define(TypeBuilder type, string name, Type argument)
    {
        MethodBuilder m = type.DefineMethod(name, MethodAttributes.Public | MethodAttributes.Static, typeof(void), new[] { argument });
        m.SetImplementationFlags(MethodImplAttributes.NoInlining);
        return m;
    }

    static void Mark(ILGenerator il, ISymbolDocumentWriter doc, int line) { il.MarkSequencePoint(doc, line, 9, line, 40); }
    static void Hide(ILGenerator il, ISymbolDocumentWriter doc) { il.MarkSequencePoint(doc, 0xfeefee, 0, 0xfeefee, 0); }

    // A loop's end is told apart from its body: each has a call.
    static MethodBuilder Deep(TypeBuilder type, ISymbolDocumentWriter doc)
    {
        MethodBuilder m = Define(type, "Deep", typeof(int));
        ILGenerator il = m.GetILGenerator();
        il.DeclareLocal(typeof(int));
        Label body = il.DefineLabel(), test = il.DefineLabel();
        Mark(il, doc, 33);
        il.Emit(OpCodes.Call, typeof(Environment).GetProperty("StackTrace").GetGetMethod());
        il.Emit(OpCodes.Call, typeof(Console).GetMethod("WriteLine", new[] { typeof(string) }));
        Hide(il, doc);
        il.Emit(OpCodes.Call, typeof(Environment).GetProperty("TickCount").GetGetMethod());
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Stloc_0);
        Mark(il, doc, 34);
        il.Emit(OpCodes.Br, test);
        il.MarkLabel(body);
        Mark(il, doc, 36);
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Call, typeof(System.Threading.Thread).GetMethod("Sleep", new[] { typeof(int) }));
        il.MarkLabel(test);
        Mark(il, doc, 37);
        il.Emit(OpCodes.Call, typeof(Environment).GetProperty("TickCount").GetGetMethod());
        il.Emit(OpCodes.Ldloc_0);
        il.Emit(OpCodes.Blt, body);
        Mark(il, doc, 38);
        il.Emit(OpCodes.Ret);
        return m;
    }

    static MethodBuilder Over(TypeBuilder type, ISymbolDocumentWriter one, MethodBuilder deep)
    {
        MethodBuilder m = Define(type, "Over", typeof(int));
        ILGenerator il = m.GetILGenerator();
        Mark(il, one, 20);
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Call, typeof(System.Threading.Thread).GetMethod("SpinWait"));
        Mark(il, one, 22);
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, deep);
        Hide(il, one);
        il.Emit(OpCodes.Nop);
        Mark(il, one, 7);
        il.Emit(OpCodes.Ret);
        return m;
    }

    static MethodBuilder Start(TypeBuilder type, ISymbolDocumentWriter doc, MethodBuilder over)
    {
        MethodBuilder m = Define(type, "Main", typeof(string[]));
        ILGenerator il = m.GetILGenerator();
        Hide(il, doc);
        il.Emit(OpCodes.Nop);
        Mark(il, doc, 11);
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ldc_I4_0);
        il.Emit(OpCodes.Ldelem_Ref);
        il.Emit(OpCodes.Call, typeof(int).GetMethod("Parse", new[] { typeof(string) }));
        il.Emit(OpCodes.Call, over);
        Mark(il, doc, 12);
        il.Emit(OpCodes.Ret);
        return m;
    }

    static object New(string type, params object[] args)
    {
        Type t = Type.GetType(type, true);
        foreach (ConstructorInfo c in t.GetConstructors())
            if (c.GetParameters().Length == args.Length && Fits(c.GetParameters(), args))
                return c.Invoke(args);
        throw new MissingMethodException(type);
    }

    static object Call(object on, string name, params object[] args)
    {
        foreach (MethodInfo m in on.GetType().GetMethods(BindingFlags.Instance | BindingFlags.Public))
            if (m.Name == name && m.GetParameters().Length == args.Length && Fits(m.GetParameters(), args))
                return m.Invoke(on, args);
        throw new MissingMethodException(on.GetType() + "." + name);
    }

    static bool Fits(ParameterInfo[] parameters, object[] args)
    {
        for (int i = 0; i < args.Length; i++)
            if (args[i] != null && !parameters[i].ParameterType.IsByRef && !parameters[i].ParameterType.IsInstanceOfType(args[i]))
                return false;
        return true;
    }

    static object Get(object on, string property) { return on.GetType().GetProperty(property).GetValue(on, null); }

    const string metadataName = ", System.Reflection.Metadata", ecma = "System.Reflection.Metadata.Ecma335.", portable = "System.Reflection.PortableExecutable.";

    static void Write(object assembly, MethodBuilder main, string path, bool embedded)
    {
        var sections = new object[3]; // IL, data of fields, symbols
        object metadata = Call(assembly, "GenerateMetadata", sections);
        object entry = Type.GetType(ecma + "MetadataTokens" + metadataName).GetMethod("MethodDefinitionHandle", new[] { typeof(int) })
            .Invoke(null, new object[] { main.MetadataToken & 0xffffff });
        object pdb = New("System.Reflection.Metadata.BlobBuilder" + metadataName, 256);
        object writer = New(ecma + "PortablePdbBuilder" + metadataName, sections[2], Call(metadata, "GetRowCounts"), entry, null);
        object id = Call(writer, "Serialize", pdb);
        object debug = New(portable + "DebugDirectoryBuilder" + metadataName);
        string beside = Path.ChangeExtension(path, ".pdb");
        Call(debug, "AddCodeViewEntry", beside, id, Get(writer, "FormatVersion"));
        if (embedded)
            Call(debug, "AddEmbeddedPortablePdbEntry", pdb, Get(writer, "FormatVersion"));
        else
            Save(pdb, beside);
        object header = Type.GetType(portable + "PEHeaderBuilder" + metadataName).GetMethod("CreateExecutableHeader").Invoke(null, null);
        object root = New(ecma + "MetadataRootBuilder" + metadataName, metadata, null, false);
        object flags = Enum.ToObject(Type.GetType(portable + "CorFlags" + metadataName), 1); // IL only
        object pe = New(portable + "ManagedPEBuilder" + metadataName, header, root, sections[0], null, null, null, debug, 128, entry, flags, null);
        object image = New("System.Reflection.Metadata.BlobBuilder" + metadataName, 256);
        Call(pe, "Serialize", image);
        Save(image, path);
    }

    static void Save(object blob, string path)
    {
        using (var file = new FileStream(path, FileMode.Create))
            Call(blob, "WriteContentTo", file);
    }
}
