// Package walk walks copied stacks through unmanaged and managed code, by the tables of one
// process. It reads nothing but the copy.
//
// Sources: the packages unwind, clr/managed and clr/contract.
//
// Glossary. A *capture* is a copied stack with registers. A return address is *replaced* where the
// runtime has written the address of its hijack stub over it.
//
// Strategy. Blocks of unmanaged frames and managed frames alternate until the stack's end. The
// copy of the runtime's Thread gives the replaced return address. A dead end is a gap with its reason.
//
// Known gaps: an ARM64 method's epilog that has read a replaced return address is recognized
// within 4 KB of its slot.
package walk
