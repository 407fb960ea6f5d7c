// Package seedwalk documents the module. The packages below make complete stacks
// of .NET programs: managed and native frames, leaf to root. A missing frame
// leaves a marked gap.
//
// Sources: Microsoft, "x64 exception handling" and "ARM64 exception handling";
// DWARF 5, section 6.4; the Linux Standard Base, release 5.0, chapter 10
// (.eh_frame); dotnet/runtime src/coreclr/inc/corprof.idl. Each package names
// its own.
//
// # Packages by task
//
// All paths below begin with github.com/seedwalk/seedwalk/.
//
//   - Unwind data of an image: pe (its AMD64 and ARM64 tables), elf, and cfi.
//   - Native frames of a stopped thread: its registers in any layout (context), its stack (context/memory),
//     the images of its process (unwind/module, filled by process/live for a running process), and a walker
//     (unwind/walker).
//   - A seed for DoStackSnapshot: stack/seed.
//   - One stack of the CLR's frames and the walker's: stack/merge.
//   - Managed frames without the CLR's help: clr/managed over clr/contract.
//   - The stacks of a running process, with names: sample/paused.
//   - A recording: cmd/record makes it, report/recording reads its file, report/export counts and writes.
//   - EventPipe traces: eventpipe/nettrace.
//
// The examples of this package run under go test, on any host. cmd/record, sample/paused, and
// eventpipe/nettrace have examples of their own.
//
// # Your responsibilities
//
//   - Stop the thread while you copy its registers and its stack. Everything else may run.
//   - Build the module table before that. Build a new one, with another generation, when images are loaded or
//     unloaded.
//   - Use a walker, a merger, or a window in one goroutine at a time. Goroutines may share a table.
//   - Check the Stop, Verdict, or Gap of every result. Damaged input is no error and no panic: a walk ends
//     early, and its Stop is the reason.
//
// # Before version 1.0
//
// Stable: context, context/memory, unwind/module, pe (with pe/amd64 and pe/arm64), elf, cfi, unwind,
// unwind/walker, stack/seed, stack/merge, the C interface of capi, and the JSON of docs/json.md. Each change
// of these has an entry in CHANGELOG.md that says what to write instead.
//
// Everything else is not stable: it may change in any release. Use the probe, the profiler, and the tool of
// one release together.
package seedwalk
