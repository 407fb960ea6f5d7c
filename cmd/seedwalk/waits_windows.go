package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/seedwalk/seedwalk/diagnostics"
	"github.com/seedwalk/seedwalk/record"
	"github.com/seedwalk/seedwalk/waits"
)

var endSignals = []os.Signal{os.Interrupt}

// Exit codes of a command that was not run, as record has them.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

// launch runs the command with its own port suspended: its runtime waits there
// until the sessions are there.
func (f *waitsFlags) launch(a *waits.Analysis) int {
	ctx, stop := f.until(context.Background())
	defer stop()
	cmd := exec.Command(f.command[0], f.command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stderr, os.Stderr
	if f.output != "-" {
		cmd.Stdout = os.Stdout
	}
	cmd.Env = append(os.Environ(), "DOTNET_DefaultDiagnosticPortSuspend=1")
	if err := cmd.Start(); err != nil {
		waitsSay("%v", err)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
			return exitNotFound
		}
		return exitCannotRun
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	client, err := diagnostics.Process(cmd.Process.Pid)
	if err == nil {
		err = untilThere(client, ended)
	}
	if err != nil {
		waitsSay("%v", err)
		<-ended
		return cmd.ProcessState.ExitCode()
	}
	code := f.watch(ctx, client, a, true)
	<-ended
	if code == exitUnreadable {
		return record.ExitRefused
	}
	return cmd.ProcessState.ExitCode()
}

// untilThere waits for the process's port.
func untilThere(c *diagnostics.Client, ended chan struct{}) error {
	for {
		_, err := c.Info()
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.New("the command ended and never started a .NET runtime (.NET 5 or later)")
		case <-time.After(20 * time.Millisecond):
		}
	}
}
