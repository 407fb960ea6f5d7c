// Package stepper runs a program one instruction at a time and knows at each of
// them what the stack truly is: for tests that hold a walker against it.
//
// Sources: ptrace(2), process_vm_readv(2); Intel's manual, volume 2, for the
// encodings of calls.
//
// Glossary. The *shadow* is the stack of calls that have not returned: for each
// the place and value of its return address and the caller's registers when it
// called. A *point* is one instruction at which a walk is compared. A frame is
// *wrong* if ip, sp or a register that the walk calls known differs; a wrong
// frame that is not doubtful, or an end of the stack where it does not end, is
// *wrong without doubt*.
//
// Strategy. A call is an instruction whose bytes say so and that left the address
// behind it on the stack. A frame is gone when the stack pointer has risen above
// its return address, however it got there: by a return, a longjmp or an
// exception. Nothing of the product takes part in that.
//
// AArch64 programs are stepped in an emulator, by its debugging server. Windows images are
// mapped into a Linux program that calls them.
//
// Known gaps: programs of one thread; signal handlers and switched stacks are not followed.
// Of a Windows image no system is there, so it calls none.
package stepper
