//go:build unix

package wholefile

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"
	"weak"

	"golang.org/x/sys/unix"
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

// place identifies a mapped file: while it is mapped, no other file gets its inode. zeros is the value of
// ZeroPages when the file was mapped. If ZeroPages has grown since, the file is mapped once more, because
// the old mapping may have zeros where the file has content again.
type place struct{ device, inode, size, zeros uint64 }

// shared has the mappings of MapShared that are in use, and the address ranges of the last ones that have
// ended.
var shared = struct {
	sync.Mutex
	of       map[place]weak.Pointer[Mapping]
	released [][]byte
}{of: map[place]weak.Pointer[Mapping]{}}

// maxReleased bounds the address ranges that show zeros in place of a file.
const maxReleased = 1024

// MapShared is Map with one mapping of a file for all callers.
func MapShared(path string, most int64) (m *Mapping, err error) {
	_, err = mapped(path, most, func(fd int, info *syscall.Stat_t) ([]byte, error) {
		shared.Lock()
		defer shared.Unlock()
		at := place{uint64(info.Dev), info.Ino, uint64(info.Size), ZeroPages()}
		if m = shared.of[at].Value(); m != nil {
			return m.Data, nil
		}
		data, err := syscall.Mmap(fd, 0, int(info.Size), syscall.PROT_READ, syscall.MAP_PRIVATE)
		if err == nil {
			m = &Mapping{data}
			shared.of[at] = weak.Make(m)
			runtime.AddCleanup(m, release, unused{at, shared.of[at], data})
		}
		return data, err
	})
	return m, err
}

// unused is a mapping that is not reachable any more.
type unused struct {
	place place
	was   weak.Pointer[Mapping]
	data  []byte
}

// release ends the mapping of a file, which may have been deleted. Zeros take its place until maxReleased
// later mappings have ended. Code that keeps a slice of it by mistake then reads zeros, and the tool goes on.
func release(u unused) {
	unix.MmapPtr(-1, 0, unsafe.Pointer(&u.data[0]), uintptr(len(u.data)), unix.PROT_READ,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED)
	shared.Lock()
	defer shared.Unlock()
	if shared.of[u.place] == u.was { // the file has not been mapped again
		delete(shared.of, u.place)
	}
	shared.released = append(shared.released, u.data)
	if len(shared.released) > maxReleased {
		syscall.Munmap(shared.released[0])
		shared.released = shared.released[1:]
	}
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
