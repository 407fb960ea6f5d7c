// Package reader reads the memory of a target through its probe if the kernel does not let the tool do it.
//
// Sources: proc(5), status; the package probe.
//
// Glossary. A *reader* is a thread of the target that serves memory reads.
//
// Strategy. Threads that do not block the probe's signals serve reads, the runtime's own idle ones first.
//
// Known gaps: Linux only.
package reader
