package record

import (
	"os"
	"path/filepath"
)

// lockFile makes a file that cannot be removed while we have it open: Go opens files
// without FILE_SHARE_DELETE.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// dead reports whether nobody has the lock open: then it is gone now.
func dead(lock string) bool { return os.Remove(lock) == nil }

// ours: the directory for temporary files is the user's own.
func ours(dir string) bool { return filepath.Dir(dir) != dir }
