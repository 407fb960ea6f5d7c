//go:build unix

package dump

import (
	"os"
	"syscall"
)

// Open maps a core file and reads it. The mapping stays for the life of the
// process.
func Open(path string) (*Core, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{NotELF, "it is no regular file"}
	}
	if info.Size() == 0 {
		return nil, &Error{NotELF, "it is empty"}
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: path, Err: err}
	}
	return New(data)
}
