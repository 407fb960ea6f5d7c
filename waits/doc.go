// Package waits turns EventPipe's lock and wait events into an answer: who
// waited how long, for what, held by whom where that can be known, and where.
//
// Sources: dotnet/runtime src/coreclr/vm/ClrEtwAll.man (events 81, 91, 301, 302)
// and the places that fire them, syncblk.cpp, threads.cpp, release 9.0.
//
// Glossary. A lock is a Monitor that is contended (event Contention). A wait is a
// wait for a wait handle, and for what is built on them (WaitHandleWait). A wait
// is top-level if no other wait of its thread is open around it. A lower bound is
// the time of a wait of which one end is outside the trace. An unreliable wait is
// one whose thread lost events while it was open: it began, and how long it took
// is not known. A site is a stack, with the kind of wait.
//
// Strategy. Each thread has a stack of open waits. A lock that really blocks
// gives a lock with a wait of the same stack inside; the wait is folded into the
// lock, so that its time is there once. Sums are of top-level waits only, so a
// thread's sum is never above its wall time. A gap in a thread's counter closes
// all its open waits as unreliable instead of pairing a start with the stop of
// another wait. A wait that ends by an exception (Thread.Interrupt) has no stop: the next
// one of its thread, whose stack does not stand on its own, shows that it is over, and it
// is unreliable. While a session writes its list of methods at the end no waits are told
// of: what is open then is bounded by the last event before. Stacks are kept once, as addresses; names are found at the end,
// by address and time.
//
// What these events cannot show. `await` blocks no thread. Thread.Sleep and
// WaitHandle.SignalAndWait report nothing, and neither does a wait or lock that
// did not have to wait. Wait handles have no object and no owner: owners are
// known for locks only. Stacks hold managed frames only, at most 100, and single
// native addresses between them.
//
// Known gaps: see above; a wait that was interrupted, on a thread that waits for nothing
// after it, looks still open; waits of runtimes before .NET 9 have no WaitHandleWait events,
// so that locks are all there is.
package waits
