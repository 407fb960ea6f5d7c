package waits

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/eventpipe/waits/report"
	"github.com/seedwalk/seedwalk/eventpipe/waits/session"
	"github.com/seedwalk/seedwalk/sample/blocked"
)

// nativeAfter is how long a wait lasts before its native frames are looked for.
const nativeAfter = 50 * time.Millisecond

// attach watches a running process.
func (f *waitsFlags) attach(a *waits.Analysis) int {
	c, err := diagnostics.Running(f.pid)
	if err != nil {
		return cli.Fail("waits", cli.ExitUnreadable, err)
	}
	ctx, stop := f.until(context.Background())
	defer stop()
	return f.watch(ctx, c, a, false)
}

// until is a context that ends at Ctrl-C or after --duration. A second Ctrl-C
// ends the program.
func (f *waitsFlags) until(ctx context.Context) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(ctx, cli.EndSignals...)
	context.AfterFunc(ctx, stop)
	if f.duration == 0 {
		return ctx, stop
	}
	ctx, cancel := context.WithTimeout(ctx, f.duration)
	return ctx, func() { cancel(); stop() }
}

// watch runs the sessions and reports.
func (f *waitsFlags) watch(ctx context.Context, c *diagnostics.Client, a *waits.Analysis, atStart bool) int {
	opt := session.Options{BufferMB: uint32(f.buffer), AtStart: atStart,
		Say: func(s string) { waitsSay("%s", s) }}
	if !atStart && f.duration == 0 && !f.follow {
		opt.Began = func() { waitsSay("watching process %d; Ctrl-C ends it", f.pid) }
	}
	if f.follow {
		opt.Follow = report.Follower(os.Stdout, a, f.write.Name == "json")
	}
	if f.keep != "" {
		keep, err := os.Create(f.keep)
		if err != nil {
			return cli.Fail("waits", cli.ExitUnreadable, err)
		}
		defer keep.Close()
		opt.Keep = keep
	}
	// Stacks are managed only where the process may not be read, and on other systems.
	if b, err := blocked.New(c.PID, nativeAfter, a); err == nil {
		opt.Blocked = b
		defer b.Close()
	}
	err := session.Run(ctx, c, a, opt)
	a.Finish()
	if f.keep != "" {
		if err := writeMaps(f.keep+".maps", a.Names); err != nil {
			waitsSay("%v", err)
		}
	}
	name := fmt.Sprintf("process %d", c.PID)
	var unreachable *diagnostics.FindError
	if errors.As(err, &unreachable) && a.Trace.Frequency == 0 {
		return cli.Fail("waits", cli.ExitUnreadable, unreachable)
	}
	if err != nil && a.Ended == nil {
		waitsSay("%s: %v", name, err)
		if a.Trace.Frequency == 0 {
			return cli.ExitWrong
		}
	}
	code := f.finish(a, name)
	if err != nil {
		return cli.ExitWrong
	}
	if f.follow {
		waitsSay("%s lost", cli.CountOf(int(a.Counts.Lost), "event"))
	}
	return code
}

// watchCommand watches a command from its start to its end, and returns the command's exit code.
func (f *waitsFlags) watchCommand(ctx context.Context, c *diagnostics.Client, a *waits.Analysis,
	cmd *exec.Cmd, ended chan struct{}) int {
	code := f.watch(ctx, c, a, true)
	select {
	case <-ended:
	case <-time.After(100 * time.Millisecond):
		waitsSay("waiting for the command to end")
		<-ended
	}
	if code == cli.ExitUnreadable {
		return options.ExitRefused
	}
	return cli.CommandCode(cmd)
}

// writeMaps writes the mapped images in the format of /proc/PID/maps.
func writeMaps(path string, n *waits.Names) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	return printMaps(out, n)
}

func printMaps(w io.Writer, n *waits.Names) error {
	for _, im := range n.Images {
		stamp := im.Inode
		if im.Inode == 0 && len(im.BuildID) <= 8 { // of an image of Windows
			stamp, _ = strconv.ParseUint(im.BuildID, 16, 32)
		}
		if _, err := fmt.Fprintf(w, "%x-%x r-xp %08x 00:00 %d %s\n", im.Start, im.End,
			im.Offset, stamp, im.Path); err != nil {
			return err
		}
	}
	return nil
}

// start starts the command. It closes ended when the command has ended. If the command cannot be run, cmd is
// nil, and code is the exit code of the tool.
func (f *waitsFlags) start(env []string) (cmd *exec.Cmd, ended chan struct{}, code int) {
	cmd = exec.Command(f.command[0], f.command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stderr, os.Stderr
	if f.output != "-" {
		cmd.Stdout = os.Stdout
	}
	cmd.Env = env
	if err := cmd.Start(); err != nil {
		return nil, nil, cli.NotStarted("waits", f.command[0], err)
	}
	ended = make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	return cmd, ended, 0
}
