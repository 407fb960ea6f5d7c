// Package blocked completes the stacks of threads that wait, from outside the
// process: the native frames above the managed leaf, which the runtime's events
// lack.
//
// Sources: proc(5), /proc/PID/task/TID/syscall; process_vm_readv(2).
//
// Strategy. While a thread waits, its stack does not change. When a wait is
// older than a threshold, the thread's stack pointer and instruction pointer are
// read from the kernel, which tells them of a thread that stands in a system
// call, and the stack is copied; nothing is stopped. The copy is unwound by call
// frame information until managed code. The join is verified: the address where
// the walk enters managed code is the event's own leaf address, or lies in the
// same method (for a P/Invoke that was inlined the runtime's address is some
// bytes before the true return address), or the frames are thrown away. They are thrown away too if the thread ran meanwhile (its place
// before and after the copy differs) and if the wait, by the clock of its stop
// event, was not open during the whole of the copy.
//
// Where the runtime's own tables can be read, as of .NET 9, the walk goes on through
// managed code to the thread's base: the native frames between managed ones, and those at
// the root, stand at their exact places. Every address of the event must be met on the
// way, in order, and the walk may meet no method that the event has not, or only the
// native frames above are kept.
//
// Glossary. To *join* is to put the native frames above those of a wait's event. A
// join is *verified* if both name the same managed leaf.
//
// Known gaps. Linux. Where a frame needs a register that no frame
// above it saved, the walk cannot go on, and the wait keeps its managed frames.
// Where the runtime's tables cannot be read, native blocks in the middle of a stack stay
// single addresses. Where
// the join needs the method's name (an inlined P/Invoke) and the name is not known
// at the end either, the frames are not shown.
package blocked
