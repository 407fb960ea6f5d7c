// Package births reports the new threads of a process on Linux as the kernel creates them, and samples the
// first period of their CPU time. The engine opens its own event for a new thread too late for that
// period.
//
// Sources: the packages perfevent and cpuring, and their sources.
//
// Glossary. A *birth* is the kernel's record of a new thread. *Copies* are samples of a new thread's first
// period (cpuring.Newborns). A thread *waits* while its birth is stored and the engine does not know the
// thread.
//
// Strategy. The descendants of all known threads are watched. A new thread has its creator's name until it
// names itself. At low rates, a thread with copies waits for half a period, because it may end soon and
// opening it takes about 25 system calls. If a process creates many threads, their births do not wake the
// tool.
//
// Known gaps: without perf events nothing is watched, and the engine finds new threads by listing.
package births
