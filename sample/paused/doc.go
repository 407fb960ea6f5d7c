// Package paused shows the stacks of stopped threads, in a running process or a core: frames with names, the
// locks that threads wait for and their owners, and pending tasks.
//
// Sources: ptrace(2), futex(2), glibc's pthread_mutex_t; dotnet/runtime src/coreclr/vm/syncblk.h, and those
// in runtimelock.go.
//
// Glossary. A *waiter* is a thread that waits in native code below a managed frame.
//
// Strategy. Each thread is stopped while its registers and stack are copied. The copy is walked after the
// thread resumes. A lock is reported only if its own words, its count of waiters, and the waiters' stacks
// agree.
//
// Known gaps: threads of a running process are stopped on Linux only. A read from a FUSE file system is
// reported as a wait with a time limit: a stop ends it with EINTR, like a socket's wait with a time limit.
package paused
