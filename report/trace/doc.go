// Package trace turns EventPipe traces (.nettrace) into a profile: samples, allocations,
// exceptions, locks, waits, GC pauses, compiled methods, and all other events with a stack.
//
// Sources: dotnet/runtime src/native/eventpipe/ep-sample-profiler.c (how threads are sampled)
// and src/coreclr/vm/ClrEtwAll.man; packages nettrace and waits read the rest.
//
// Glossary. The sampler is the runtime's own thread that takes samples. A pass is one sample of
// every managed thread. A fold is the sum of equal events of one thread and stack. The rundown
// lists the methods at the end of a trace.
//
// Strategy. Events are folded as they are read, except GC pauses, which are added at the end. A trace names
// most of its methods at its end, so folds hold addresses, and Profile names them. Several traces of one
// process share their names. A sample represents the time since the previous pass, and is wall time. The
// sampler reports whether the thread was in managed code. Few runtimes report that correctly: .NET 9.0.5 on
// Linux reports almost all samples of busy threads as native code. The time in managed code counts as CPU
// time only if the trace has a plausible share of it.
//
// Known gaps: a trace holds no native frames, no thread names, and no CPU clock.
package trace
