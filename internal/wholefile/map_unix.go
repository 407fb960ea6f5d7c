//go:build unix

package wholefile

import (
	"os"
	"sync"
	"syscall"
)

// noWait is the flag that opens a pipe without its other end.
const noWait = syscall.O_NONBLOCK

// Map is Read without a copy: the pages are shared with all who have the file mapped. An
// empty file, which cannot be mapped, is refused. The mapping stays.
func Map(path string, most int64) ([]byte, error) {
	return mapped(path, most, func(fd int, info *syscall.Stat_t) ([]byte, error) {
		return syscall.Mmap(fd, 0, int(info.Size), syscall.PROT_READ, syscall.MAP_PRIVATE)
	})
}

// place identifies a file for as long as it is mapped: its inode is not used again.
type place struct{ device, inode, size uint64 }

// shared are the mappings of MapShared.
var shared = struct {
	sync.Mutex
	of map[place][]byte
}{of: map[place][]byte{}}

// MapShared is Map with one mapping of a file for all callers. It stays for the life of the process.
func MapShared(path string, most int64) ([]byte, error) {
	return mapped(path, most, func(fd int, info *syscall.Stat_t) (data []byte, err error) {
		shared.Lock()
		defer shared.Unlock()
		at := place{uint64(info.Dev), info.Ino, uint64(info.Size)}
		if data = shared.of[at]; data != nil {
			return data, nil
		}
		if data, err = syscall.Mmap(fd, 0, int(info.Size), syscall.PROT_READ,
			syscall.MAP_PRIVATE); err == nil {
			shared.of[at] = data
		}
		return data, err
	})
}

func mapped(path string, most int64, get func(fd int, info *syscall.Stat_t) ([]byte, error)) ([]byte, error) {
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
	data, err := get(fd, &info)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: path, Err: err}
	}
	return data, nil
}

// descriptor opens a file without an os.File, which would ask the kernel three times more
// whether it can be waited for. It does not wait for a pipe's other end.
func descriptor(path string) (fd int, err error) {
	for {
		fd, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|noWait, 0)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}
