//go:build !linux

package paused

import (
	"errors"
	"runtime"

	"github.com/seedwalk/seedwalk/process/live"
)

// Snapshot holds the threads of a process as they were read.
type Snapshot struct {
	Process *Process
	Stacks  []Stack
	Stops   []live.Stop
	Names   map[uint32]string
}

// instead names another way to see the stacks.
var instead = map[string]string{"windows": ", and on Windows seedwalk record --pid PID --duration 2s shows what each thread of a .NET 10 process does"}[runtime.GOOS]

// LookAt returns an error: threads are stopped on Linux only.
func LookAt(int, []int) (*Snapshot, error) {
	return nil, errors.New("running processes are read on Linux only; cores (--core) on any system" + instead)
}

// LookAtTasks returns the error of LookAt.
func LookAtTasks(pid int, tids []int) (*Snapshot, error) { return LookAt(pid, tids) }

// Open returns the error of LookAt.
func Open(int, uint32, uint64) (*Process, error) {
	_, err := LookAt(0, nil)
	return nil, err
}
