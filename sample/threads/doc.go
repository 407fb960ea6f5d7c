// Package threads reads what the kernel reports of a process's threads, and decides which of them to poll
// when.
//
// Sources: proc(5); sched-stats of the kernel's documentation (schedstat).
//
// Glossary. A *poll* reads a thread's counters. A thread *rests* if it got no processor since the last
// poll. A process is *idle* while its clock does not move.
//
// Strategy. Resting threads are polled with exponential backoff, at common instants. While the process
// is idle, its clock is read, and each thread is polled once a minute.
//
// Known gaps: Linux only.
package threads
