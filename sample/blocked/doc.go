// Package blocked completes the stacks of waiting threads from outside the process: it adds the native frames
// above the managed leaf, which the runtime's events lack.
//
// Sources: proc(5), /proc/PID/task/TID/syscall; process_vm_readv(2).
//
// Strategy. The stack of a waiting thread does not change. When a wait is older than a threshold, the kernel
// reports the thread's stack pointer and instruction pointer (it does for a thread in a system call), and the
// stack is copied. Nothing is stopped. The copy is unwound with call frame information down to managed code.
// The join is verified: the walk must enter managed code at the event's own leaf address, or in the same
// method. (For an inlined P/Invoke the runtime's address is a few bytes before the true return address.) The
// frames are dropped if that fails, if the thread ran during the copy (its position changed), or if the copy
// was not entirely within the wait, by the clock of the wait's stop event.
//
// If the runtime's own tables can be read (.NET 9 and later), the walk continues through managed code to the
// thread's base, and native frames between managed ones and at the root get their exact places. The walk must
// meet every address of the event in order, and no method that the event lacks; otherwise only the native
// frames above are kept.
//
// Glossary. To *join* is to put native frames above those of a wait's event. A join is *verified* if both
// name the same managed leaf.
//
// Known gaps. Linux only. If a frame needs a register that no frame above it saved, the walk ends and the
// wait keeps its managed frames. If the runtime's tables cannot be read, native blocks in the middle of a
// stack stay single addresses. If the join needs the method's name (an inlined P/Invoke) and the name is
// still unknown at the end, the frames are not shown.
package blocked
