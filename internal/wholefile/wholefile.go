// Package wholefile has the bytes of a file at once: read into memory, or mapped.
//
// Sources: POSIX.1-2017, open, fstat and mmap ("References within the address range ...
// following the end of an object shall result in delivery of a SIGBUS signal").
//
// Glossary. Refused: not read at all, with a Reason.
//
// Strategy: images and cores are parsed from one slice. A file is refused before a byte is
// read or memory is allocated. Reasons are: it is not a regular file (a pipe never ends, a
// device has no size), or it is larger than the caller allows. Map also refuses empty files.
//
// MapShared maps a file once for all callers. The mapping ends with its last user: the garbage collector
// finds that no Mapping is reachable. Its bytes are not memory of Go, so a slice of them does not keep it.
//
// A file that is cut off while it is mapped faults on reading (SIGBUS), as in the program that runs it. In a
// program that has called ReadCutAsZeros, the missing pages are zeros instead, wherever they are read.
// They are counted. Format readers refuse zeros, or find that a table ends there.
//
// Known gaps: an unwind record that lies across the place where its file was cut off can look complete. The
// handler works on Linux only. If the kernel has no room for one more mapping, the fault ends the process.
package wholefile

import (
	"fmt"
	"io"
	"os"
)

// Mapping is the content of a file. Data is valid while the Mapping is reachable.
type Mapping struct{ Data []byte }

// Reason is the reason why a file was refused.
type Reason uint8

// Why a file is refused.
const (
	NotRegular Reason = iota // Value is its mode
	Empty
	TooLarge // Value is its size in bytes
)

var reasons = [...]string{NotRegular: "not a regular file", Empty: "empty", TooLarge: "larger than is read"}

func (r Reason) String() string { return reasons[r] }

// Error is a file that was refused before it was read.
type Error struct {
	Path   string
	Reason Reason
	Value  uint64
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s (%d)", e.Path, e.Reason, e.Value) }

// Read reads a file of at most most bytes. If it refuses the file, err is an *Error. If the
// file shrinks meanwhile, Read returns the remaining bytes without an error. An empty file
// gives no bytes and no error. The caller checks whether its format is complete.
func Read(path string, most int64) ([]byte, error) {
	f, size, err := Open(path, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, size)
	n, err := io.ReadFull(f, data)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return nil, err
	}
	return data[:n], nil
}

// Open opens a regular file of at most most bytes, and returns its size. It does not wait for a pipe's other
// end. If it refuses the file, err is an *Error.
func Open(path string, most int64) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil {
		err = refused(path, info, most)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func refused(path string, info os.FileInfo, most int64) error {
	switch {
	case !info.Mode().IsRegular():
		return &Error{path, NotRegular, uint64(info.Mode())}
	case info.Size() > most:
		return &Error{path, TooLarge, uint64(info.Size())}
	}
	return nil
}
