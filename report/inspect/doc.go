// Package inspect shows an image's unwind data as text: a summary of the image, one function
// with its codes or rows and their effect at every instruction, and a check of every entry.
//
// Sources: those of packages elf, cfi and pe; the instruction text comes from
// golang.org/x/arch.
//
// Glossary. An *entry* is one FDE or one .pdata entry. The *effect* at an
// instruction is where the caller's registers are just before it runs.
//
// Strategy: speed does not matter here, and the code allocates freely. It uses the same readers
// as the walkers, so its output shows what the walkers do.
//
// A PE image may have DWARF sections beside its exception directory. Both are
// shown and checked. The x64 walker asks the exception directory first and the
// DWARF sections where no entry covers an address.
//
// Known gaps: a PE image's functions have the names of its exports only;
// instructions the disassembler does not know (VEX, EVEX, SVE) are
// shown as bytes.
package inspect
