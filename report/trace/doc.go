// Package trace turns EventPipe traces (.nettrace) into a profile: CPU samples, allocations,
// exceptions, locks, waits, GC pauses, compiled methods, and all other events with a stack.
//
// Sources: dotnet/runtime src/native/eventpipe/ep-sample-profiler.c (how threads are sampled)
// and src/coreclr/vm/ClrEtwAll.man; packages nettrace and waits read the rest.
//
// Glossary. The sampler is the runtime's own thread that takes samples. A pass is one sample of
// every managed thread. A fold is the sum of equal events of one thread and stack. The rundown
// lists the methods at the end of a trace.
//
// Strategy. Events are folded as they are read. A trace names most of its methods at its end, so
// folds hold addresses, and Profile names them. Several traces of one process share their names.
// A sample represents the time since the previous pass. The sampler says whether the thread was
// in managed code. If it was, the time is CPU time. Otherwise the thread was in native code, where it
// may wait or compute, and the time is wall time only.
//
// Known gaps: a trace holds no native frames, no thread names, and no CPU clock.
package trace
