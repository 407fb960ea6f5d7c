//go:build !linux

package outside

import (
	"errors"
	"runtime"

	"github.com/seedwalk/seedwalk/process/live"
)

// Look is what was seen of a process's threads.
type Look struct {
	PausedProcess *PausedProcess
	Stacks        []Stack
	Stops         []live.Stop
	Names         map[uint32]string
}

// instead is what else shows them.
var instead = map[string]string{"windows": ", and on Windows seedwalk record --pid PID --duration 2s shows what each thread of a .NET 10 process does"}[runtime.GOOS]

// LookAt refuses: threads are stopped on Linux only.
func LookAt(int, []int) (*Look, error) {
	return nil, errors.New("threads of a running process are looked at on Linux; a core of one (--core) anywhere" + instead)
}

// LookAtTasks refuses as LookAt does.
func LookAtTasks(pid int, tids []int) (*Look, error) { return LookAt(pid, tids) }
