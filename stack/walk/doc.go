// Package walk walks copied stacks through unmanaged and managed code with the tables of one process. It
// reads only the copy.
//
// Sources: the packages unwind, clr/managed and clr/contract.
//
// Glossary. A *capture* is a copied stack with registers. A return address is *replaced* if the runtime has
// written the address of its hijack stub over it.
//
// Strategy. Blocks of unmanaged frames and managed frames alternate until the stack's end. The copy of the
// runtime's Thread contains the replaced return address. A dead end is a gap with its reason.
//
// Known gaps: the epilog of an ARM64 method that has read a replaced return address is recognized within 4 KB
// of its slot.
package walk
