package waits

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/process/program"
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
	r := &runtimes{program.NewFamily(cmd.Process.Pid), map[int]bool{}}
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
	family *program.Family
	met    map[int]bool // has been watched or resumed
}

// new is a runtime that has not been met, or nil.
func (r *runtimes) new() *diagnostics.Client {
	r.family.Grow()
	for _, pid := range r.family.PIDs() {
		if r.met[pid] {
			continue
		}
		c, err := diagnostics.Process(pid)
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
			return nil, errors.New("the command ended without starting a program of .NET 5 or later")
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
			waitsSay("process %d is not watched: waits watches only the first .NET process of a command", c.PID)
			c.Resume()
			continue
		}
		select {
		case <-ended:
			r.family.Close()
			return
		case <-time.After(lookEvery):
		}
	}
}
