// Package outside samples a .NET process on Linux from outside. The probe inside the process only copies
// registers and stacks; this package does everything else.
//
// Sources: perf_event_open(2), proc(5); the packages probe and threads.
//
// Glossary. A *poll* reads a thread's counters. A thread *rests* between two polls if it got no processor
// in between, so its stack is unchanged. A process is *idle* while its clock does not move, so none of its
// threads runs. *Unsampled* time is time in which a thread could run but has no sample yet.
//
// Strategy. A perf event on each thread's CPU time sends the thread a signal, and the probe's handler
// copies the stack (perfclock_linux.go). The event does not count in the kernel, where a signal would
// interrupt a waiting system call. Where no signal can be used, the kernel copies the stack into a ring:
//
//   - for time in the kernel, and for threads that block or take the signal (copies_linux.go)
//   - for the start of a command (started_linux.go)
//   - for the first period of a new thread (package births)
//
// Threads that switch often have such copies for stretches of time only (threads.Stretches), or CPU timers if
// they wait at most switches (threads.Waits).
//
// Where perf events are forbidden, the engine samples running threads at random moments
// (randomclock_linux.go). CPU timers sample threads that wait very often, those that get no perf event, and
// every thread if the user chooses them (timer_linux.go).
//
// Blocked threads are read without a signal. The kernel reports where the thread waits, and the engine
// reads its stack from here. If the thread's counters are the same before and after, position and stack
// belong together. The engine sends a signal only if the first frames need a register that it cannot
// read. It then sends no other signal until the thread has run again. Resting threads are polled with
// exponential backoff, and in an idle process once a minute. A poll covers all the time since the last one.
//
// Stacks are walked once the layout of the runtime's tables has been verified (package sampler). A dead end
// is a gap with its reason, never a guess.
//
// In an emulated program (qemu-user), the probe takes all samples. The kernel does not report where such
// threads wait, so each gets one signal each time it has run.
//
// Known gaps: the ARM64 code was written from the kernel's sources and tested in an emulator only.
package outside
