// Package snap loads recorded stack snapshots with true frames, so that tests
// replay real programs on any machine.
//
// Source: the project's own vectors, folder elf: programs that were
// single-stepped from their first instruction by a tracker which keeps its own
// stack of calls and returns and reads no unwind data (schema h4.snap.v1).
//
// Glossary. A *program* is one traced run; a *modset* is the set of modules
// mapped at a snapshot; a *class* says what its unwind data can give (see
// Snapshot.Class).
//
// Strategy: everything is read into memory once, from the tar.gz or from an
// unpacked folder of the same layout. This is test code: it allocates freely.
//
// What of the recorded truth is known to be wrong stands in flaws.go, by name.
//
// Known gaps: writable module data is not recorded, so a rule that dereferences
// it fails with Unreadable.
package snap
