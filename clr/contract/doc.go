// Package contract finds the managed method at an instruction pointer, and the method's unwind data. It only
// reads memory of a .NET runtime: it calls no function of the CLR and takes no lock. Package clr/managed
// unwinds with these data.
//
// Sources: dotnet/runtime docs/design/datacontracts (contract-descriptor.md, data_descriptor.md,
// ExecutionManager.md), src/coreclr/vm/codeman.{h,cpp}, src/coreclr/inc/dacvars.h.
//
// Glossary. The *descriptor* is the JSON text that a runtime publishes about its own structures. The *range
// map* is a radix tree from address to *range section*: one code heap, one precompiled image, or one list of
// stubs. A *nibble map* gives the start of the method in a code heap. The *code header* before that start
// refers to the MethodDesc and holds the RUNTIME_FUNCTIONs: the method's own first, then those of its
// *funclets* (handlers).
//
// Strategy. .NET 10 publishes all locations. .NET 9 publishes a descriptor without code tables, but exports
// the debugger's table of globals, whose first entry is the range map. The layouts of .NET 10.0.9 apply there
// too. A single-file program of .NET 9 publishes no descriptor at all: the package assumes that of 9.0.5.
// .NET 8 publishes none either: its code tables are those of 9, and few offsets differ (toNet8). Every
// assumption is verified before a lookup is answered.
//
// Verification. Verify walks the range map and checks the tables against each other. For each method of a
// code heap it checks these circular references: the functions of the code header begin where the nibble map
// lists code; their unwind data can be read; the nibble map leads from the first, the middle, and the last
// byte back to the start; the MethodDesc's module has the MethodDesc in its row; the debug information refers
// to the code; the MethodDesc refers to the code. A section's flags agree with its contents, a precompiled
// image with its Module. The range map and the code heaps are verified separately, because a program may not
// have compiled a method yet. Confirm accepts one answer of the CLR as proof instead.
//
// Every read goes through a memory.Reader that cannot fault. Every count, link, and range is checked before
// use.
//
// Lookups take the instruction pointer itself, never one byte less: the CLR pads a call that does not return.
//
// Known gaps: on ARM64 only runtimes on Linux that publish their code tables (.NET 10), without tested
// precompiled images; the method descriptor of precompiled code is not resolved (its unwind data is); of .NET
// 8 only 8.0.6 was tested, without precompiled images; composite images are looked up in their PE exception
// directory; interpreter sections are refused. Names are in package naming.
package contract
