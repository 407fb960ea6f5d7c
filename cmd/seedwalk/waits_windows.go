package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/seedwalk/seedwalk/diagnostics"
	"github.com/seedwalk/seedwalk/record"
	"github.com/seedwalk/seedwalk/waits"
)

var endSignals = []os.Signal{os.Interrupt}

// launch runs the command with its own port suspended: its runtime waits there
// until the sessions are there.
func (f *waitsFlags) launch(a *waits.Analysis) int {
	ctx, stop := f.until(context.Background())
	defer stop()
	cmd, ended, code := f.start(append(os.Environ(), "DOTNET_DefaultDiagnosticPortSuspend=1"))
	if cmd == nil {
		return code
	}
	client, err := diagnostics.Process(cmd.Process.Pid)
	if err == nil {
		err = untilThere(client, ended)
	}
	if err != nil {
		waitsSay("%v", err)
		<-ended
		return cmd.ProcessState.ExitCode()
	}
	code = f.watch(ctx, client, a, true)
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
