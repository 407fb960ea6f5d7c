package elf

import (
	"errors"

	"github.com/seedwalk/seedwalk/internal/wholefile"
)

// MaxFile is the size in bytes of the largest file that Open and Map take.
const MaxFile = 2 << 30

// Open reads and parses the ELF file at path. A file that is not regular, or is larger
// than MaxFile, is refused with a *FormatError before it is read.
func Open(path string) (*File, error) {
	data, err := wholefile.Read(path, MaxFile)
	if err != nil {
		return nil, refused(err)
	}
	return New(data, path)
}

// Map is Open for an image that this process or another has mapped already. On systems
// where files can be mapped, it shares the page cache instead of copying the file. All
// callers share one mapping of a file. It ends when none of their Files is reachable: a
// caller of a method that returns bytes must keep the File as long as it uses them. If the
// file is truncated while it is mapped, reading it faults, as in the program that runs
// it, unless wholefile.ReadCutAsZeros was called. For a file that no process runs, use Open.
func Map(path string) (*File, error) {
	m, err := wholefile.MapShared(path, MaxFile)
	if err != nil {
		return nil, refused(err)
	}
	f, err := New(m.Data, path)
	if err == nil {
		f.owner = m
	}
	return f, err
}

// refused converts a *wholefile.Error to a *FormatError. Other errors stay.
func refused(err error) error {
	var e *wholefile.Error
	if !errors.As(err, &e) {
		return err
	}
	return &FormatError{Name: e.Path, Structure: "file", Value: e.Value, Msg: e.Reason.String(), Err: e}
}
