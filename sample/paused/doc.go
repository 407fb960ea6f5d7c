// Package paused shows the stacks of threads while they stand, of a running process or of a core:
// their frames with names, the locks that they wait for and who holds these, and pending tasks.
//
// Sources: ptrace(2), futex(2), glibc's pthread_mutex_t; dotnet/runtime src/coreclr/vm/syncblk.h.
//
// Glossary. A *waiter* is a thread that waits in native code below a managed frame.
//
// Strategy. Each thread is stopped while its registers and stack are copied, and walked when it
// goes on. A lock is named only if its own words, the waiters that it counts, and the waiters'
// stacks agree.
//
// Known gaps: threads of a running process are stopped on Linux only.
package paused
