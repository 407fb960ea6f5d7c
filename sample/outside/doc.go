// Package outside samples a .NET process of Linux from outside: the probe in it only copies
// registers and stacks, all else is done here.
//
// Sources: perf_event_open(2), proc(5); the packages probe and threads.
//
// Glossary. A *visit* reads a thread's counters. A thread *rests* from a
// visit to the next if it has not been given a processor in between: then its
// stack is what it was. A process is *idle* while its clock does not move: then none of
// its threads runs. *Owed* is time in which a thread could run and no sample
// of it has been taken yet.
//
// Strategy. A perf event of each thread's CPU time sends the thread a signal, and the probe's
// handler copies the stack (perfclock_linux.go). The event has no hits in the kernel, where a
// signal would interrupt a system call that waits. Rings of the kernel have copies of such hits
// (kernelclock_linux.go), and of a command's start (started_linux.go). Where perf events are
// forbidden, the engine samples running threads at random moments (randomclock_linux.go). CPU
// timers are the last choice (timer_linux.go).
//
// A thread that is blocked is not touched: the kernel says where it waits, its stack is read
// from here, and its counters are the same before and after, so the two belong together. Only
// where the first frames need a register that cannot be had so is it asked by a signal, and then
// not again before it ran. A resting thread is visited less and less often, and in an idle
// process not at all. A visit counts for all the time since the last one.
//
// Stacks are walked as soon as the runtime's tables are proven (package sampler). A dead end is a
// gap with its reason, never a guess.
//
// An emulated program (qemu-user) is sampled by the probe in it. The kernel does not say where
// its threads wait, so each is asked by a signal once each time that it has run.
//
// Known gaps: on ARM64 the sources of the kernel, and an emulator, were all there was to go by.
package outside
