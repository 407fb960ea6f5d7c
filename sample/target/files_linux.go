package target

import (
	"fmt"
	"os"
	"syscall"

	"github.com/seedwalk/seedwalk/internal/wholefile"
)

// FilesOf returns a reader of files as the process sees them, which may be in a container.
func FilesOf(pid int) func(path string, most int64) ([]byte, error) {
	root := fmt.Sprintf("/proc/%d/root", pid)
	return func(path string, most int64) ([]byte, error) {
		if path == "" || path[0] != '/' {
			return nil, &os.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
		}
		return wholefile.Read(root+path, most)
	}
}
