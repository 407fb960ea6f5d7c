// Package arm64 reads the unwind data of ARM64 PE images: packed .pdata words and
// .xdata records.
//
// Sources: Microsoft, "ARM64 exception handling" (.pdata records, packed unwind
// data, .xdata records, unwind codes, function fragments); dotnet/runtime
// src/coreclr/unwinder/arm64/unwinder.cpp for the codes 0xE8-0xEC and for what a
// skipped code counts.
//
// Glossary. A *packed* entry is a .pdata word that describes a canonical
// prolog and epilog; any other points to an .xdata record. A *code* is one
// unwind code of 1 to 5 bytes; the *codes* of a prolog are in the order in
// which they are undone. A *scope* describes one epilog: where it begins, and at
// which byte its codes begin. A *fragment* is a part of a function whose prolog
// ran elsewhere: its codes up to end_c are its own, those after are its host's.
//
// Strategy: a packed word is expanded into the codes of its prolog and its epilog.
// All later steps (counting, running, printing) therefore work on codes only.
// Decoding allocates nothing and reports faults by value.
//
// Known gaps: SVE codes (alloc_z, save_zreg, save_preg) and trap_frame are
// recognized and refused.
package arm64
