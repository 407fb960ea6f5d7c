package record

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/process/program"
)

// refusalLog names the log in which the CLR says why it refused the profiler. On Linux the CLR writes no log.
const refusalLog = ""

// exitNote reports how the command ended, "" if its exit code is 0.
func exitNote(code int) string {
	switch {
	case code == 0:
		return ""
	case isSignal(code):
		return fmt.Sprintf("the command was ended by signal %d (%s)", code-options.ExitSignal,
			syscall.Signal(code-options.ExitSignal))
	}
	return fmt.Sprintf("the command ended with exit code %d", code)
}

func isSignal(code int) bool { return code > options.ExitSignal && code < options.ExitSignal+65 }

// endedAtOnce returns the note about a command that a signal ended before its runtime may have started, ""
// for any other command.
func (r *run) endedAtOnce() string {
	const startup = 2 * time.Second // a runtime loads the library after 0.1 to 0.3 s; the machine may be busy
	if isSignal(r.code) && r.lasted < startup {
		return exitNote(r.code)
	}
	return ""
}

// startRemedy reports what to do about a command that could not be started.
func startRemedy(command []string, _ error) (what, remedy string) {
	if needsStarter(command[0]) {
		return "it is a .NET assembly", "start it with dotnet (mono if it is for Mono): seedwalk record -- dotnet " +
			strings.Join(command, " ")
	}
	return "", "check that it is an executable file"
}

// needsStarter reports whether a command that could not be started is a file of managed code.
func needsStarter(command string) bool {
	f, err := program.Open(command)
	return err == nil && f.Managed
}

const listenRemedy = "set TMPDIR to a directory you may write to"

// forwarded are the signals passed on to the command.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
	syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP}

// fromTerminal are those a terminal sends to its whole foreground process
// group, the command included.
var fromTerminal = map[os.Signal]bool{syscall.SIGINT: true, syscall.SIGHUP: true, syscall.SIGQUIT: true,
	syscall.SIGWINCH: true, syscall.SIGTSTP: true}

// forward passes a signal to the command, unless the terminal has sent it there already, and on TSTP stops
// this process too.
func (r *run) forward(sig os.Signal) {
	if r.cmd != nil && (!fromTerminal[sig] || !inForeground()) {
		r.cmd.Process.Signal(sig) // fails if the command has ended
	}
	if sig == syscall.SIGTSTP {
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
}

// inForeground reports whether our process group is the foreground process group of
// the controlling terminal.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

// resumeHeld does nothing: on Linux, all threads end with their process.
func resumeHeld(string, int, func(string)) {}
