// Package snap loads recorded stack snapshots with true frames, so that tests
// replay real programs on any machine.
//
// Source: the project's own vectors, folder elf (schema h4.snap.v1). A tracker
// single-stepped programs from their first instruction. It keeps its own stack of
// calls and returns, and reads no unwind data.
//
// Glossary. A *program* is one traced run; a *modset* is the set of modules
// mapped at a snapshot; a *class* says what its unwind data can give (see
// Snapshot.Class).
//
// Strategy: everything is read into memory once, from the tar.gz or from an
// unpacked folder of the same layout. This is test code: it allocates freely.
//
// flaws.go lists the known errors of the recorded truth, by name.
//
// Known gaps: writable module data is not recorded, so a rule that dereferences
// it fails with Unreadable.
package snap
