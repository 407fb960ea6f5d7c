//go:build unix

package wholefile

import (
	"os"
	"syscall"
)

// Map is Read without a copy: the pages are shared with all who have the file mapped. An
// empty file, which cannot be mapped, is refused. Unmap gives the mapping back.
func Map(path string, most int64) ([]byte, error) {
	fd, err := descriptor(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer syscall.Close(fd)
	var info syscall.Stat_t
	if err := syscall.Fstat(fd, &info); err != nil {
		return nil, &os.PathError{Op: "fstat", Path: path, Err: err}
	}
	switch size := int64(info.Size); {
	case info.Mode&syscall.S_IFMT != syscall.S_IFREG:
		return nil, &Error{path, NotRegular, uint64(info.Mode)}
	case size > most:
		return nil, &Error{path, TooLarge, uint64(size)}
	case size == 0:
		return nil, &Error{path, Empty, 0}
	}
	data, err := syscall.Mmap(fd, 0, int(info.Size), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: path, Err: err}
	}
	return data, nil
}

// descriptor opens a file without an os.File, which would ask the kernel three times more
// whether it can be waited for. It does not wait for a pipe's other end.
func descriptor(path string) (fd int, err error) {
	for {
		fd, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

// Unmap gives back what Map returned, which must not be read any more.
func Unmap(data []byte) { syscall.Munmap(data) }
