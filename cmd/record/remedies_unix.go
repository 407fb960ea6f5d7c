//go:build unix

package record

import (
	"errors"
	"fmt"
	"syscall"
)

// whereRefusalsStand: the CLR of Linux tells nobody.
const whereRefusalsStand = ""

const (
	listenRemedy = "set TMPDIR to a directory you may write to"
	makeFolder   = "mkdir -p "
)

// moreFallbackDirs are tried beside the user's own.
var moreFallbackDirs = []string{"/tmp", "/var/tmp", "/dev/shm"}

// exitNote reports how the command ended, if that is worth saying.
func exitNote(code int) string {
	switch {
	case code == 0:
		return ""
	case code > ExitSignal && code < ExitSignal+65:
		return fmt.Sprintf("the command was ended by signal %d (%s)", code-ExitSignal, syscall.Signal(code-ExitSignal))
	}
	return fmt.Sprintf("the command ended with exit code %d", code)
}

// startRemedy reports what to do about a command that could not be started.
func startRemedy(string, error) (what, remedy string) {
	return "", "check that it is an executable file"
}

// unnamed: a file is run whatever its name ends in.
func unnamed(string) bool { return false }

// replaceError: a file in a writable directory can always be replaced.
func replaceError(string) error { return nil }

func readOnly(err error) bool { return errors.Is(err, syscall.EROFS) }

func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
