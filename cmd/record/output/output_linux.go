package output

import (
	"errors"
	"os"
	"syscall"
)

// newMode returns the mode of a new file.
func newMode() os.FileMode {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return 0o666 &^ os.FileMode(mask)
}

const MakeFolder = "mkdir -p "

// moreFallbackDirs are tried beside the user's own.
var moreFallbackDirs = []string{"/tmp", "/var/tmp", "/dev/shm"}

// replaceError returns nil: a file in a writable directory can always be replaced.
func replaceError(string) error { return nil }

func readOnly(err error) bool { return errors.Is(err, syscall.EROFS) }

func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
