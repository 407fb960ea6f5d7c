package target

import (
	"fmt"
	"os"
	"syscall"

	"github.com/seedwalk/seedwalk/internal/wholefile"
)

// FilesOf reads files where a process sees them: it may be in a container.
func FilesOf(pid int) func(path string, most int64) ([]byte, error) {
	root := fmt.Sprintf("/proc/%d/root", pid)
	return func(path string, most int64) ([]byte, error) {
		if path == "" || path[0] != '/' {
			return nil, &os.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
		}
		if info, err := os.Stat(root + path); err != nil || !info.Mode().IsRegular() { // opening a pipe waits
			return nil, &os.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
		}
		return wholefile.Read(root+path, most)
	}
}
