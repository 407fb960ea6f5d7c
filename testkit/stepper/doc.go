// Package stepper runs a program one instruction at a time, and knows the true
// stack at each of them. Tests compare a walker with it.
//
// Sources: ptrace(2), process_vm_readv(2); Intel's manual, volume 2, for the
// encodings of calls.
//
// Glossary. The *shadow* is the stack of calls that have not returned. For each
// call it has the place and value of the return address, and the caller's
// registers. A *point* is one instruction at which a walk is compared. A frame is
// *wrong* if ip, sp, or a register that the walk calls known differs. It is *wrong
// without doubt* if the walk did not mark it as doubtful. So is a walk that ends
// before the stack does.
//
// Strategy. A call is an instruction with the bytes of a call, which pushed the
// address of the next instruction. A frame has ended when the stack pointer is
// above its return address, by a return, a longjmp, or an exception. No code of
// the product takes part in that.
//
// AArch64 programs are stepped in an emulator, by its debugging server. Windows images are
// mapped into a Linux program that calls them.
//
// Known gaps: programs have one thread. Signal handlers and switched stacks are not
// followed. A Windows image can call no function of the system.
package stepper
