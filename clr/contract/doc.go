// Package contract finds the managed method at an instruction pointer, and where
// its unwind data is, in the memory of a .NET runtime: without the CLR's help,
// its locks or its cooperation. It is a source of clr/managed, which steps.
//
// Sources: dotnet/runtime docs/design/datacontracts (contract-descriptor.md,
// data_descriptor.md, ExecutionManager.md), src/coreclr/vm/codeman.{h,cpp},
// src/coreclr/inc/dacvars.h.
//
// Glossary. The *descriptor* is the JSON text a runtime publishes about its own
// structures. The *range map* is a radix tree from address to *range section*:
// one code heap, one precompiled image, or one list of stubs. A *nibble map*
// gives the start of the method in a code heap. The *code header* before that
// start names the MethodDesc and holds the RUNTIME_FUNCTIONs: the method's own
// first, then those of its *funclets* (handlers).
//
// Strategy. .NET 10 says where everything is. .NET 9 publishes a descriptor
// without code tables, but exports the debugger's table of globals, whose first
// entry is the range map. The layouts of .NET 10.0.9 hold there too. A
// single-file program of .NET 9 publishes no descriptor at all: that of 9.0.5 is
// supposed. .NET 8 publishes none either: its code tables are those of 9, and few
// offsets differ (toNet8). Every supposition is proven before a lookup is answered.
//
// Proof. Verify walks the range map and lets the tables bear witness for
// themselves. For each method of a code heap it closes these circles: the functions
// of the code header begin where the nibble map says that code begins; their unwind data
// can be read; the nibble map leads back from the first, the middle, and the
// last byte; the MethodDesc's module has the MethodDesc in its row; the debug
// information lies in the code; the MethodDesc leads to the code. A section's flags
// agree with what it holds, a precompiled image with its Module. The range map and
// the code heaps are proven separately: a program may have compiled no method
// yet. Confirm takes one answer of the CLR as the proof instead.
//
// Every read goes through a memory.Reader that cannot
// fault. Every count, link and range is checked before use.
//
// Lookups take the instruction pointer itself, never one byte less: the CLR
// pads a call that does not return.
//
// Known gaps: of ARM64 a runtime that publishes its code tables (.NET 10), on Linux,
// and no precompiled image of it has been met; the method descriptor of precompiled code is
// not resolved (its unwind data is); of .NET 8 only 8.0.6 was seen, without precompiled images;
// composite images are looked up in their PE exception directory; interpreter sections are
// refused. Names are package naming.
package contract
