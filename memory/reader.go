package memory

// Reader reads a target's memory: a process, a core, a dump. ReadAt fills all of
// p from addr or answers false; it must not fault.
type Reader interface {
	ReadAt(p []byte, addr uint64) bool
}
