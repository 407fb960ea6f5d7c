//go:build unix

package record

import (
	"os"
	"syscall"
)

// lockFile makes a file and locks it. The lock ends with the process, however it ends;
// the command does not inherit it (O_CLOEXEC, as with every file of Go's).
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, os.NewSyscallError("flock", err)
	}
	_, err = f.WriteString("locked by the seedwalk that records here\n")
	return f, err
}

// dead reports whether nobody holds the lock. A file that has been made and not locked
// yet is empty.
func dead(lock string) bool {
	f, err := os.OpenFile(lock, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && info.Size() > 0 && syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// ours: what other users left is theirs to remove.
func ours(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
