package probe

// LibraryName is the file of the probe.
const LibraryName = "libseedwalk_probe.so"

// Library is the probe that this program carries, of its own architecture; nil if it was
// built without one (make build makes it first).
func Library() []byte {
	b, err := lib.ReadFile(libFolder + LibraryName)
	if err != nil {
		return nil
	}
	return b
}
