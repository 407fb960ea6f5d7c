// Package cpuring samples the CPU time of a process's threads from outside: each time a thread has used
// one period of CPU time, the kernel copies its registers and stack into a ring. The process is not
// stopped, and no code of seedwalk's runs in it.
//
// Source: package perfevent and its sources.
//
// Glossary. A *clock* is the perf event of one thread on one CPU. A *first period* is a clock's period until
// its first hit: random, at most the whole period.
//
// Strategy. Each CPU has one ring. The clocks of all threads on that CPU share it, so locked memory does not
// grow with the number of threads. The kernel reports new threads at once, and a goroutine opens
// their clocks. Each clock begins with a random first period: otherwise a thread that ends before one period
// would never be sampled. Each hit that counts represents one whole period. Until the tool has read the first
// hit, hits may come more often, and one for each whole period counts. After several hits, a clock gets
// another random period near the whole one, so that no program stays in step with its clock.
//
// A clock opens about 100 us after its thread's start. Until then the thread is sampled by inherited copies
// of its creator's clocks (Newborns).
//
// Known gaps: the first thread that a thread creates inherits no copies, so it has no hits if it ends before
// its own clock opens; its time appears only in the process's clock. If the kernel does not permit hits in
// itself, a copy's first recorded hit may be its second one. The kernel copies at most 64 KB of a stack, and
// less for threads with shallow stacks (depth.go). Each thread costs one descriptor per CPU, and one more for
// the watch.
package cpuring
