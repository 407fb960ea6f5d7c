// Package seedwalk documents the module; its code is in the packages below. They
// make complete mixed-mode stacks of .NET programs: unmanaged and managed
// frames, leaf to root. A frame that is missing leaves a marked gap.
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
// Stop the thread while you copy its registers and its stack; everything else may
// run. Make the module table before that, and a new one, with another generation,
// whenever images were loaded or unloaded. Use a walker, a merger, or a window in
// one goroutine at a time. Goroutines may share a table. Check the Stop, Verdict,
// or Gap of every result: input may be damaged. A walk that ends early returns the
// reason as its Stop, not as an error.
//
// # Before version 1.0
//
// Stable: each change has an entry in CHANGELOG.md that says what to write
// instead. These are context, memory, module, pe (with pe/amd64 and pe/arm64), elf,
// cfi, unwind with unwind/walker, seed, merge, the C interface of capi, the
// JSON of docs/json.md.
//
// Not stable: everything else that can be imported may change in any release. The
// probe, the profiler, and the tool must be of the same release.
package seedwalk
