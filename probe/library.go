package probe

import "embed"

// LibraryName is the file of the probe.
const LibraryName = "libseedwalk_probe.so"

//go:embed all:lib
var lib embed.FS

// Library is the probe that this program carries, nil if it was built without one
// (make build makes it first).
func Library() []byte {
	b, err := lib.ReadFile("lib/" + LibraryName)
	if err != nil {
		return nil
	}
	return b
}
