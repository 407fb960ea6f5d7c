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
// entry is the range map; the layouts of .NET 10.0.9 hold there too. They are a
// supposition until Confirm has compared one answer with the CLR's own, and
// until then nothing is answered. A single-file program of .NET 9 publishes no
// descriptor at all: that of 9.0.5 is supposed, and proven likewise. Every read goes through a memory.Reader that cannot
// fault; every count, link and range is checked before use.
//
// Lookups take the instruction pointer itself, never one byte less: the CLR
// pads a call that does not return.
//
// Known gaps: of ARM64 a runtime that publishes its code tables (.NET 10), on Linux,
// and no precompiled image of it has been met; the method descriptor of precompiled code is
// not resolved (its unwind data is); composite images are looked up in their PE
// exception directory; interpreter sections are refused. Names are package
// naming.
package contract
