package waits

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
)

// lookEvery is how often new processes of the command are looked for, which wait meanwhile.
const lookEvery = 20 * time.Millisecond

// launch runs the command with its own port suspended: its runtime waits there
// until the sessions are there.
func (f *waitsFlags) launch(a *waits.Analysis) int {
	ctx, stop := f.until(context.Background())
	defer stop()
	cmd, ended, code := f.start(append(os.Environ(), "DOTNET_DefaultDiagnosticPortSuspend=1"))
	if cmd == nil {
		return code
	}
	r := newRuntimes(cmd)
	client, err := r.first(ctx, ended)
	if client == nil {
		if err != nil {
			waitsSay("%v", err)
		}
		r.resumeUntil(ended)
		return cmd.ProcessState.ExitCode()
	}
	go r.resumeUntil(ended)
	return f.watchCommand(ctx, client, a, cmd, ended)
}

// runtimes are a command's processes: each runtime among them waits at its own port.
type runtimes struct {
	members map[uint32]windows.Handle // held open, so that no number is another's meanwhile
	began   int64                     // the command; what is older is none of its children
	met     map[uint32]bool           // has been watched or resumed
}

func newRuntimes(cmd *exec.Cmd) *runtimes {
	r := &runtimes{members: map[uint32]windows.Handle{}, met: map[uint32]bool{}}
	pid := uint32(cmd.Process.Pid)
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err == nil {
		r.members[pid], r.began = h, born(h)
	}
	return r
}

// born is when a process began, in the system's time.
func born(h windows.Handle) int64 {
	var made, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &made, &ended, &kernel, &user) != nil {
		return 0
	}
	return made.Nanoseconds()
}

// maxMembers bounds the processes of a command.
const maxMembers = 1 << 12

// grow takes in what members have started.
func (r *runtimes) grow() {
	list, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return
	}
	defer windows.CloseHandle(list)
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(list, &entry); err == nil && len(r.members) < maxMembers; err = windows.Process32Next(list, &entry) {
		_, child := r.members[entry.ParentProcessID]
		if _, known := r.members[entry.ProcessID]; known || !child {
			continue
		}
		h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, entry.ProcessID)
		if err != nil {
			continue
		}
		if at := born(h); at > 0 && at < r.began { // a child of one that had its parent's number before
			windows.CloseHandle(h)
			continue
		}
		r.members[entry.ProcessID] = h
	}
}

// new is a runtime that has not been met, nil if there is none now.
func (r *runtimes) new() *diagnostics.Client {
	r.grow()
	for pid := range r.members {
		if r.met[pid] {
			continue
		}
		c, err := diagnostics.Process(int(pid))
		if err != nil {
			continue
		}
		if _, err := c.Info(); err == nil {
			r.met[pid] = true
			return c
		}
	}
	return nil
}

// first waits for a runtime of the command.
func (r *runtimes) first(ctx context.Context, ended chan struct{}) (*diagnostics.Client, error) {
	for {
		if c := r.new(); c != nil {
			return c, nil
		}
		select {
		case <-ended:
			return nil, errors.New("the command ended and never started a .NET runtime (.NET 5 or later)")
		case <-ctx.Done():
			return nil, nil
		case <-time.After(lookEvery):
		}
	}
}

// resumeUntil lets the runtimes of the command's other processes go on, which wait as the
// first one did: one process is watched at a time.
func (r *runtimes) resumeUntil(ended chan struct{}) {
	for {
		if c := r.new(); c != nil {
			waitsSay("process %d is not watched: the first .NET process is", c.PID)
			c.Resume()
			continue
		}
		select {
		case <-ended:
			for _, h := range r.members {
				windows.CloseHandle(h)
			}
			return
		case <-time.After(lookEvery):
		}
	}
}
