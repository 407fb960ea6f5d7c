// Package reader reads the memory of a target through the probe in it, where the kernel lets
// nobody else.
//
// Sources: proc(5), status; the package probe.
//
// Glossary. A *reader* is a thread of the target that serves memory reads.
//
// Strategy. Threads that do not block the probe's signals serve reads, the runtime's own idle ones
// first.
//
// Known gaps: Linux only.
package reader
