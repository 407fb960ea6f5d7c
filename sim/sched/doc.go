// Package sched runs small worlds of actors (threads, collectors, kernels) one
// step at a time under a schedule that is data: a random number, a list of
// choices, or every list there is.
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
//   - point: a call that can matter to others (Yield, Lock, SuspendThread ...).
//     An actor arrives at a point, and when it is chosen does the point's
//     effect and runs on to its next one. That run is one step.
//   - choice: one number a Chooser is asked for, only where there are at least
//     two options. A list of choices is a whole run.
//   - in grace: a suspended thread that has not noticed yet. It may still take
//     steps, until Stop (reading its context) or the kernel puts the suspension
//     in force.
//   - stuck: can never move again, whatever the others do.
//
// # Strategy
//
// Actors are coroutines (iter.Pull), so exactly one runs and nothing races. The
// next actor is chosen on the coroutine of the one that arrives, which saves
// the switch when it goes on itself. Exploration runs the same build again with
// another prefix of choices; actors and their coroutines are reused.
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
//   - States are compared by a 64-bit hash. Two that collide would hide a
//     branch: at a million states the odds are about 1 in 30 million.
//   - That a stuck thread stays stuck assumes that those who suspended it
//     resume it; an actor that resumes for others must say so with Watchdog.
//   - Actors that recover from every panic in an endless loop cannot be cut.
package sched
