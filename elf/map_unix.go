//go:build unix

package elf

import (
	"fmt"
	"os"
	"syscall"
)

// Map is Open for an image that this process or another has mapped already: it
// shares the page cache instead of reading the file into memory of its own. The
// mapping stays for the life of the process. A file that is cut short while
// mapped faults on reading, as it does for the program that runs it: for a file
// that nobody runs, use Open.
func Map(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	if !info.Mode().IsRegular() || size <= 0 || size > MaxFile {
		return nil, fmt.Errorf("%s: not a regular file of at most %d bytes", path, int64(MaxFile))
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, &os.PathError{Op: "mmap", Path: path, Err: err}
	}
	file, err := New(data, path)
	if err != nil {
		syscall.Munmap(data)
	}
	return file, err
}
