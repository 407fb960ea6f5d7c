//go:build unix

package record

import (
	"os"
	"syscall"
)

// newMode is the mode of a new file.
func newMode() os.FileMode {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return 0o666 &^ os.FileMode(mask)
}

// bias is what samples taken in a suspension suffer from: managed threads stop
// where they poll, not where they were.
const bias = "; samples are biased to safe points"

// suspends is what the snapshot mode does.
const suspends = "the runtime is suspended for each sample"

// LibraryName is the file of the library that suspends the runtime (--mode snapshot).
const LibraryName = "libseedwalk_profiler.so"
