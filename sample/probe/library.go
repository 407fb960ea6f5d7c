package probe

// LibraryName is the probe's file name.
const LibraryName = "libseedwalk_probe.so"

// Library returns the probe for this program's architecture, which is embedded in the program. The bytes are
// shared: do not modify them.
func Library() []byte { return library }
