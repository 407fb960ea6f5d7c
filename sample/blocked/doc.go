// Package blocked completes the stacks of waiting threads from outside the process: it adds the native frames
// above the managed leaf, which the runtime's events lack.
//
// Sources: proc(5), /proc/PID/task/TID/syscall; process_vm_readv(2).
//
// Strategy. The stack of a waiting thread does not change. When a wait is older than a threshold, the tool
// reads the thread's stack pointer and instruction pointer from the kernel, and copies the stack. The kernel
// reports both for any thread in a system call. No thread is stopped. The copy is unwound with call frame
// information down to managed code.
//
// The join is verified: the walk must enter managed code at the event's own leaf address, or in the same
// method. The method decides for an inlined P/Invoke, because the runtime's address is then a few bytes
// before the true return address. The native frames are dropped in three cases: the join is not verified,
// the thread ran during the copy (its position changed), or the wait ended before the copy did. The clock of
// the wait's stop event decides the last case.
//
// If the runtime's own tables can be read (.NET 9 and later), the walk continues through managed code to the
// thread's base. Native frames between managed ones and at the root then get their exact places. The walk
// must meet every address of the event in order, and no method that the event lacks. Otherwise only the
// native frames above the event's are kept.
//
// Glossary. To *join* is to put native frames above those of a wait's event. A join is *verified* if both
// name the same managed leaf.
//
// Known gaps. Linux only. If a frame needs a register that no frame above it saved, the walk ends and the
// wait keeps its managed frames. If the runtime's tables cannot be read, native blocks in the middle of a
// stack stay single addresses. If the join needs the method's name (an inlined P/Invoke) and the name is
// still unknown at the end, the frames are not shown.
package blocked
