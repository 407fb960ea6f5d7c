package output

import (
	"cmp"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
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

// createPartial creates a growing file in the place of one that a killed tool has left, or of a link that
// others have put there. The file is locked until both f and lock are closed.
func createPartial(path string, mode os.FileMode) (f, lock *os.File, err error) {
	for range 10 { // others may do the same
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		switch {
		case err == nil && lockAt(f, path) == nil:
			fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				os.Remove(path)
				f.Close()
				return nil, nil, os.NewSyscallError("fcntl", err)
			}
			return f, os.NewFile(uintptr(fd), path), nil
		case err == nil: // another tool took it for one that was left
			f.Close()
		case !errors.Is(err, os.ErrExist):
			return nil, nil, err
		}
		if removeLeft(path) == errBusy {
			return nil, nil, errBusy
		}
	}
	return nil, nil, cmp.Or(err, errBusy)
}

// removeLeft removes a growing file that no tool writes.
func removeLeft(path string) error {
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err == nil {
			defer f.Close()
			if err := lockAt(f, path); err != nil {
				return err
			}
		}
	}
	return os.Remove(path)
}

// lockAt locks a file that is still at path. It returns errBusy if another tool has locked the file. A file
// system without locks is no error.
func lockAt(f *os.File, path string) error {
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK {
		return errBusy
	}
	there, err := os.Lstat(path)
	if here, err2 := f.Stat(); err != nil || err2 != nil || !os.SameFile(there, here) {
		return os.ErrNotExist
	}
	return nil
}
