package memory

// Reader reads the memory of a process, a core, or a dump. ReadAt fills all of p from addr,
// or returns false. It must not fault.
type Reader interface {
	ReadAt(p []byte, addr uint64) bool
}
