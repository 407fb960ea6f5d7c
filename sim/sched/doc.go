// Package sched runs small worlds of actors (threads, collectors, kernels) one step at a time.
// The schedule is data: a random number, a list of choices, or every possible list.
//
// # Sources
//
// Stateless exploration by re-execution: P. Godefroid, "Model Checking for
// Programming Languages using VeriSoft" (POPL 1997). Preemption bounds: M.
// Musuvathi, S. Qadeer, "Iterative Context Bounding" (PLDI 2007). Suspend
// counts and their asynchrony: Microsoft's pages of SuspendThread,
// ResumeThread and GetThreadContext.
//
// # Glossary
//
//   - point: a call that can affect other actors (Yield, Lock, SuspendThread ...).
//     An actor waits at a point until it is chosen. Then it executes the point's
//     effect and runs to its next point. That is one step.
//   - choice: one number that a Chooser returns, only where there are at least
//     two options. A list of choices determines a whole run.
//   - in grace: a suspended thread that has not noticed yet. It may still take
//     steps, until Stop (reading its context) or the kernel puts the suspension
//     in force.
//   - stuck: can never move again, whatever the others do.
//
// # Strategy
//
// Actors are coroutines (iter.Pull), so exactly one runs and nothing races. An actor that
// arrives at a point chooses the next actor on its own coroutine. So no switch is needed if
// it continues itself. Exploration runs the same build again with another prefix of choices;
// actors and their coroutines are reused.
//
// The kernel's own moment of suspension is an option only if every actor that could
// move is in grace or a daemon. That misses no deadlock: for the other actors, a
// thread that is stopped early looks like one that is not chosen, as long as one of
// them can move.
//
// # Known gaps
//
//   - No partial-order reduction: what an actor does between two points is
//     unknown to the scheduler, so no two steps are known to be independent.
//     Instead, runs are cut at equal states (Prune). If an actor keeps a value that it
//     has not observed, or changes another's local state without saying so (Changes),
//     different states look equal, and runs are lost. In a small world, Report.Orders.All
//     then differs from the number of runs without Prune.
//   - States are compared by a 64-bit hash. Two states with the same hash would hide a
//     branch. With a million states, the probability is about 1 in 30 million.
//   - A stuck thread is assumed to stay stuck, because only the actor that suspended it
//     resumes it. An actor that resumes threads of others must declare that with Watchdog.
//   - Actors that recover from every panic in an endless loop cannot be cut.
package sched
