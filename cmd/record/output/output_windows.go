package output

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// newMode returns the mode of a new file: its folder determines which users may read it.
func newMode() os.FileMode { return 0o666 }

const MakeFolder = "mkdir "

// moreFallbackDirs are tried beside the user's own.
var moreFallbackDirs []string

// replaceError returns why an existing file cannot be replaced: it is read-only, or
// another program has it open and does not share it.
func replaceError(path string) error {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o200 == 0 {
		return errors.New("it is read-only")
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	return err
}

func readOnly(err error) bool { return errors.Is(err, windows.ERROR_WRITE_PROTECT) }

func noSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, syscall.Errno(windows.ERROR_DISK_QUOTA_EXCEEDED))
}

// createPartial creates a growing file in the place of one that a killed tool has left. A file that another
// tool has open stays.
func createPartial(path string, mode os.FileMode) (f, lock *os.File, err error) {
	os.Remove(path)
	f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	return f, nil, err
}
