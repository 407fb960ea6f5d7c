// Package waits turns EventPipe's lock and wait events into a list of waits: which thread
// waited, for how long, for what, where in the code, and who held the lock, if known.
//
// Sources: dotnet/runtime src/coreclr/vm/ClrEtwAll.man (events 81, 91, 301, 302)
// and the places that fire them, syncblk.cpp, threads.cpp, release 9.0.
//
// Glossary. A lock is a contended Monitor (event Contention). A wait is a wait for a wait
// handle, or for something built on wait handles (WaitHandleWait). A wait is top-level
// if no other wait of its thread encloses it. The time of a wait is a lower bound if one
// of its ends is outside the trace. A wait is unreliable if its thread lost events while
// the wait was open: its duration is unknown. A site is a stack with the kind of wait.
//
// Strategy. Each thread has a stack of open waits. A lock that blocks reports a wait with
// the same stack inside the lock. The wait is merged into the lock, so that its time
// counts once. Sums cover top-level waits only, so the sum of a thread never exceeds its
// wall time. A gap in a thread's event counter closes all its open waits as unreliable;
// otherwise a start could be paired with the stop of another wait. A wait that ends by
// an exception (Thread.Interrupt) has no stop. The thread's next wait shows that it is
// over, if its stack does not extend the first one's; the first wait is then unreliable.
// While a session writes its list of methods at the end, it reports no waits. The last
// event before the list bounds the waits that are open then. Stacks are stored once, as
// addresses. Names are resolved at the end, by address and time.
//
// What these events cannot show. `await` blocks no thread. Thread.Sleep and
// WaitHandle.SignalAndWait report nothing, and neither do uncontended waits and
// locks. A thread that spins reports nothing until it blocks: SemaphoreSlim, ManualResetEventSlim,
// Task.Wait, and Barrier spin first. Wait handles have no object and no owner: owners are known for locks
// only. Stacks hold managed frames only, at most 100, and single
// native addresses between them.
//
// Known gaps: see above. An interrupted wait appears open if its thread does not wait
// again. Runtimes before .NET 9 have no WaitHandleWait events, so only locks are known.
package waits
