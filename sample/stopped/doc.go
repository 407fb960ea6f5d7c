// Package stopped samples any native program on Linux without running code in it.
//
// Sources: perf_event_open(2), ptrace(2), by the packages cpuring and process/live.
//
// Glossary. The *rest* of a stack is the part that the kernel has not copied.
//
// Strategy. The kernel copies the stacks of running threads. A waiting thread is stopped while its stack is
// copied. A resting thread is sampled by its known stack.
//
// Known gaps: without perf events, CPU time is attributed to the stack at which a thread is stopped. A
// note reports this.
package stopped
