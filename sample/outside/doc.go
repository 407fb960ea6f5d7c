// Package outside samples a .NET process from outside: the probe in it only copies
// registers and stacks, all else is done here.
//
// Sources: perf_event_open(2), proc(5), sched-stats of the kernel's documentation (schedstat); Microsoft,
// SuspendThread, GetThreadContext and ReadProcessMemory; the packages probe,
// clr/contract and clr/naming.
//
// Glossary. A *visit* is a look at a thread's counters. A thread *rests* from a
// visit to the next if it has not been given a processor in between: then its
// stack is what it was. A process is *idle* while its clock does not move: then none of
// its threads runs. *Owed* is time in which a thread could run and no sample
// of it has been taken yet.
//
// Strategy. A perf event of each thread's CPU time sends the thread a signal, and the probe's
// handler copies the stack (perfclock_linux.go). The event has no hits in the kernel, where a
// signal would interrupt a system call that waits. Rings of the kernel have copies of such hits
// (kernelclock_linux.go), and of a command's start, before its runtime loads the probe
// (startup_linux.go). Where perf events are forbidden, the engine samples running threads at
// random moments (randomclock_linux.go). CPU timers are the last choice (timer_linux.go).
//
// A thread that is blocked is
// not touched: the kernel says where it stands, its stack is read from here, and
// that its counters are the same before and after proves that the two belong
// together. Only where the first frames need a register that cannot be had so is it
// asked by a signal, and then not again before it ran. A resting thread is visited
// less and less often, and in an idle process not at all. A visit counts for all the time
// since the last one.
//
// On Windows there is no probe: each thread in turn is suspended while its context and
// stack are copied, and is weighted by the processor time that it has used.
//
// Stacks are walked as soon as the runtime's tables are proven (pending.go). A dead end is a gap
// with its reason, never a guess.
//
// An emulated program (qemu-user) is sampled by the probe in it: where its threads wait the
// kernel does not tell, so that each is asked by a signal once each time that it has run.
//
// Known gaps: on Windows x86-64 only. On ARM64 the sources of the kernel, and an emulator,
// were all there was to go by: no machine of it has been seen.
package outside
