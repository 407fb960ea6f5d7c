// Package stopped samples any native program of Linux with nothing of ours in it.
//
// Sources: perf_event_open(2), ptrace(2), by the packages cpuring and process/live.
//
// Glossary. The *rest* of a stack is what the kernel has not copied.
//
// Strategy. The kernel copies the stacks of running threads. A thread that waits is stopped while
// its stack is copied. One that rests is sampled by the stack that is known.
//
// Known gaps: without perf events processor time is charged to the stack at which a thread is
// stopped, which a note says.
package stopped
