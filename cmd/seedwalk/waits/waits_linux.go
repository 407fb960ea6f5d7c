package waits

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
)

// launch runs the command with a diagnostic port. The command's runtime waits at the port until the sessions
// have started.
func (f *waitsFlags) launch(a *waits.Analysis) int {
	dir, err := os.MkdirTemp("", "seedwalk-waits-")
	if err != nil {
		return cli.Fail("waits", options.ExitRefused, err)
	}
	defer os.RemoveAll(dir)
	port, err := diagnostics.Listen(filepath.Join(dir, "port"))
	if err != nil {
		return cli.Fail("waits", options.ExitRefused, err)
	}
	defer port.Close()
	// SIGPIPE ends the watch and not the program, so that the folder is removed.
	ctx, release := signal.NotifyContext(context.Background(), syscall.SIGPIPE)
	defer release()
	ctx, stop := f.until(ctx)
	defer stop()
	cmd, ended, code := f.start(withPort(os.Environ(), port.Variable()))
	if cmd == nil {
		return code
	}
	var client *diagnostics.Client
	select {
	case client = <-port.Runtimes():
	case <-ended:
		waitsSay("the command ended without starting a program of .NET 5 or later")
		return cli.CommandCode(cmd)
	case <-ctx.Done():
		<-ended
		return cli.CommandCode(cmd)
	}
	go resumeOthers(port)
	return f.watchCommand(ctx, client, a, cmd, ended)
}

// resumeOthers resumes the runtimes of the command's children: the tool watches one process at a time.
func resumeOthers(port *diagnostics.Port) {
	for c := range port.Runtimes() {
		waitsSay("process %d is not watched: waits watches only the first .NET process of a command", c.PID)
		c.Resume()
	}
}

// withPort adds our port to those that the user has set.
func withPort(env []string, variable string) []string {
	for i, v := range env {
		if old, ok := strings.CutPrefix(v, diagnostics.PortVariable+"="); ok && old != "" {
			env[i] = variable + ";" + old
			return env
		}
	}
	return append(env, variable)
}
