// Package hang judges why a process makes no progress: which thread waits for which, and
// what that means.
//
// Source: the wait functions of dotnet/runtime (src/libraries/System.Private.CoreLib,
// release/9.0 and release/10.0), as their names appear on stacks.
//
// Glossary: a snapshot holds the stacks and locks of all threads of a process. A thread is still if it
// used no CPU time between two snapshots and its stack did not change. A wait is what the leaf of a
// stack blocks in. A worker is a thread of the managed thread pool.
//
// Strategy: Judge compares two snapshots, about a second apart. A thread that changed between them
// does not hang. The functions on a stack show what the thread waits for, or else its system call
// does. The snapshot has the owners of locks. Judge tries the rules in the order of the list in
// rules.go, and each rule that holds gives a verdict with its evidence. A verdict counts as a hang if
// it is certain, or if few healthy programs look like this. If a hang is Refutable, the caller judges
// again with a third snapshot. A core is a single snapshot: then only deadlock and abandoned count as
// a hang.
//
// A thread waits for another one through a lock that the other one holds, through its end, or through a task
// that it runs. These edges make one graph, and a circle in it is a deadlock. An edge is kept only if nothing
// but the other thread, or a time limit, can end the wait.
//
// Known gaps: readers of a reader-writer lock and owners of semaphores are not known, nor
// who would complete a TaskCompletionSource. Where the chains of tasks are not known, only the
// number of workers that wait for tasks shows that a pool is starved. Time limits are known for
// system calls, but not for fcntl locks or file timers.
package hang
