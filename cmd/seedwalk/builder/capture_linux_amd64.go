package builder

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/stack/capture"
)

func (f *captureFlags) run() int {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, cli.EndSignals...)
	defer signal.Stop(stop)
	pid, cmd := f.pid, (*exec.Cmd)(nil)
	if pid == 0 {
		cmd = exec.Command(f.command[0], f.command[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return cli.NotStarted("capture", f.command[0], err)
		}
		pid = cmd.Process.Pid
	}
	t := capture.NewTaker(f.stacks, f.bytes)
	f.take(t, pid, stop)
	code := f.keep(t)
	if cmd == nil {
		return code
	}
	_ = cmd.Wait() // only now: an earlier Wait would receive the events of our own stops
	if code == cli.ExitOK {
		code = cli.CommandCode(cmd)
	}
	return code
}

// take captures stacks of the process until there are enough, or the process has ended.
func (f *captureFlags) take(t *capture.Taker, pid int, stop <-chan os.Signal) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / f.rate))
	defer tick.Stop()
	var late <-chan time.Time
	if f.duration > 0 {
		late = time.After(f.duration)
	}
	for t.Round(pid); !t.Full() && !capture.Ended(pid); t.Round(pid) {
		select {
		case <-stop:
			return
		case <-late:
			return
		case <-tick.C:
		}
	}
}

// keep writes the captured stacks to the file.
func (f *captureFlags) keep(t *capture.Taker) int {
	if len(t.File.Stacks) == 0 {
		why := "there was no thread to stop"
		if t.Refused != nil {
			why = t.Refused.Error()
		}
		return cli.Fail("capture", options.ExitRefused, "no stack was taken: "+why)
	}
	if err := t.File.Write(f.output); err != nil {
		return cli.Fail("capture", options.ExitRefused, err)
	}
	if !f.quiet {
		size := 0
		for i := range t.File.Stacks {
			size += len(t.File.Stacks[i].Runs[0].Data)
		}
		fmt.Fprintf(os.Stderr, "seedwalk capture: %s, %.1f MB, %s of images: %s\n",
			cli.CountOf(len(t.File.Stacks), "stack"), float64(size)/1e6,
			cli.CountOf(len(t.File.Sets), "set"), f.output)
	}
	return cli.ExitOK
}
