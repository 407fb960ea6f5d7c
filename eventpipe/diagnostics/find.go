package diagnostics

import (
	"fmt"

	"github.com/seedwalk/seedwalk/internal/procstat"
)

// Why is the reason why a process cannot be reached.
type Why uint8

const (
	NoProcess Why = iota // there is no such process
	NoServer             // it has no diagnostics server: no .NET, or the server is disabled
	Denied               // it belongs to another user
	Stale                // its socket exists but nothing listens
	Stopped              // a signal has stopped it
	Ended                // it is a zombie
	Kernel               // it is a thread of the kernel
	NoFiles              // it has too few free file descriptors
)

var whys = [...]string{
	"there is no such process",
	"it has no diagnostics port: it is not a .NET process (.NET Core 3.0 or later), its runtime has not started yet, or DOTNET_EnableDiagnostics is 0",
	"it belongs to another user; run seedwalk as that user or as root",
	"its diagnostics port does not answer",
	"a signal has stopped it; kill -CONT continues it",
	"it has ended (zombie)",
	"it is a thread of the kernel",
	"it has fewer than 8 free file descriptors, so a connection could end it; raise its limit (prlimit --nofile)",
}

// FindError reports why a process cannot be reached.
type FindError struct {
	PID int
	Why Why
	Err error
}

func (e *FindError) Error() string {
	s := fmt.Sprintf("process %d: %s", e.PID, whys[e.Why])
	if e.Err != nil {
		s += " (" + e.Err.Error() + ")"
	}
	return s
}

// IsStopped reports whether a signal such as SIGSTOP has stopped a process. It is false on Windows.
func IsStopped(pid int) bool {
	return procstat.Read(pid).Field(procstat.State) == "T"
}

// Running is Process, but it refuses a process that a signal has stopped: its runtime would not answer.
func Running(pid int) (*Client, error) {
	if c, err := Process(pid); err != nil || !IsStopped(pid) {
		return c, err
	}
	return nil, &FindError{pid, Stopped, nil}
}

func (e *FindError) Unwrap() error { return e.Err }
