// Package walk walks copied stacks through unmanaged and managed code with the tables of one process. It
// reads only the copy.
//
// Sources: the packages unwind, clr/managed and clr/contract.
//
// Glossary. A *capture* is a copied stack with registers. A return address is *replaced* if the runtime has
// written the address of its hijack stub over it.
//
// Strategy. Blocks of unmanaged frames and managed frames alternate until the stack's end. The copy of the
// runtime's Thread contains the replaced return address. A dead end is a gap with its reason, with three
// exceptions. Stacks of Go end at the roots of its runtime, which are found by name. If a core lacks what
// describes a method, the walk leaves it by its frame pointer, and the frames below are doubtful. The
// runtime's function that restores a context has wrong call frame information and is left without it.
//
// Known gaps: the epilog of an ARM64 method that has read a replaced return address is recognized within 4 KB
// of its slot. Callers on another stack are missing: of runtime.systemstack, and of a goroutine that C has
// called. A method without a frame pointer ends the walk if a core does not describe it.
package walk
