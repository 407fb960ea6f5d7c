// Package cpuring samples the processor time of a process's threads from outside: the kernel
// copies registers and stack of a thread into a ring each time that it has used a period of
// processor time. The process is not stopped, and nothing of ours is in it.
//
// Source: package perfevent, and what it names.
//
// Glossary. A *clock* is the perf event of one thread on one CPU. A *first period* is a
// clock's period until its first hit: random, at most the whole period.
//
// Strategy. There is one ring for each CPU, which the clocks of all threads on that CPU share,
// so that locked memory does not grow with threads. The kernel reports new threads at once,
// and a goroutine opens their clocks. Each clock begins with a random first period: without
// it a thread that ends before one period would never be sampled. Each hit stands for one
// whole period. Hits between the first one and the change to the whole period are dropped.
//
// A clock is open some 100 us after its thread's birth. Until then copies of its creator's
// clocks sample it (Newborns).
//
// Known gaps: the first thread that a thread creates has no copies, so that it has no hits if
// it ends before its clock is open; its time is in the process's clock only. Where the kernel
// permits no hits in itself, a copy's first recorded hit may be its second one. The kernel copies
// at most 64 KB of a stack, and less of a thread whose stacks are shallow (depth.go). Each
// thread costs one descriptor for each CPU, and one more for the watch.
package cpuring
