package probe

// LibraryName is the file of the probe.
const LibraryName = "libseedwalk_probe.so"

// Library returns the probe that this program carries, of its own architecture. The bytes
// are shared: they must not be changed.
func Library() []byte { return library }
