//go:build unix

package wholefile

import (
	"os"
	"syscall"
)

// Map is Read without a copy: the pages are shared with all who have the file mapped. An
// empty file, which cannot be mapped, is refused. Unmap gives the mapping back.
func Map(path string, most int64) ([]byte, error) {
	f, size, err := open(path, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size == 0 {
		return nil, &Error{path, Empty, 0}
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: path, Err: err}
	}
	return data, nil
}

// Unmap gives back what Map returned, which must not be read any more.
func Unmap(data []byte) { syscall.Munmap(data) }
