// Package seedwalk documents the module; its code is in the packages below. They
// make complete mixed-mode stacks of .NET programs: unmanaged and managed
// frames, leaf to root, without holes.
//
// Sources: Microsoft, "x64 exception handling" and "ARM64 exception handling";
// DWARF 5, section 6.4; the Linux Standard Base, release 5.0, chapter 10
// (.eh_frame); dotnet/runtime src/coreclr/inc/corprof.idl. Each package names
// its own.
//
// # Packages by task
//
// Unwind data of an image: [github.com/seedwalk/seedwalk/pe] (its AMD64 and ARM64
// tables), [github.com/seedwalk/seedwalk/elf] and
// [github.com/seedwalk/seedwalk/cfi].
//
// Unmanaged frames of a stopped thread: registers in any layout
// ([github.com/seedwalk/seedwalk/context]), its stack
// ([github.com/seedwalk/seedwalk/context/memory]), the images of its process
// ([github.com/seedwalk/seedwalk/unwind/module], filled by
// [github.com/seedwalk/seedwalk/process/live] for a running process), and a walker
// ([github.com/seedwalk/seedwalk/unwind/walker]).
//
// A seed for DoStackSnapshot: [github.com/seedwalk/seedwalk/stack/seed]. One stack of
// the CLR's frames and the walker's: [github.com/seedwalk/seedwalk/stack/merge].
// Managed frames without the CLR's help: [github.com/seedwalk/seedwalk/clr/managed]
// over [github.com/seedwalk/seedwalk/clr/contract].
//
// The examples of this package run under go test, on any host.
//
// # Your responsibilities
//
// The thread must stand still while its registers and stack are copied; nothing
// else has to wait. Make the module table before that, and a new one, with
// another generation, whenever images were loaded or unloaded. A walker, a merger
// and a window belong to one goroutine at a time; a table to any number. Look at
// every answer's Stop, Verdict or Gap: input may be damaged, and a walk that ends
// early says so and is not an error.
//
// # Before version 1.0
//
// Stable, so that it changes only with an entry in CHANGELOG.md that says what to
// write instead: context, memory, module, pe (with pe/amd64 and pe/arm64), elf,
// cfi, unwind with unwind/walker, seed, merge, the C interface of capi, the
// JSON of docs/json.md.
//
// Not stable, may change in any release: everything else that can be imported,
// above all agent, clr/..., live, outside, probe, record, sim, snapshot and wire;
// the stream between probe, profiler and tool belongs to one release of them.
package seedwalk
