//go:build unix

// Package pty gives tests a pseudo terminal (pts(4)).
package pty

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Open makes a pseudo terminal of a size. The caller closes slave.
func Open(t testing.TB, rows, columns uint16) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("SKIPPED-CHECK: no pseudo terminals: " + err.Error())
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	n, err1 := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	err2 := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	err3 := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	slave, err4 := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return master, slave
}
