package record

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/sample/suspended"
)

const startIt = "start it with seedwalk record -- COMMAND, which can put a library into it"

// attachable returns why a running process cannot be recorded: it is sampled from outside, so its runtime
// must describe where its code is.
func attachable(o *options.Options) *options.Refusal {
	no := func(what, remedy string) *options.Refusal {
		return options.Refuse(fmt.Sprintf("process %d", o.PID), what, remedy)
	}
	if o.Outside {
		return options.Refuse("--outside", "native programs are recorded on Linux only",
			"leave it out to record .NET 10: on Windows nothing is put into the process anyway")
	}
	if o.PID == os.Getpid() {
		return no("it is seedwalk itself", "choose another process")
	}
	p, err := suspended.OpenProspect(o.PID)
	switch {
	case errors.Is(err, windows.ERROR_INVALID_PARAMETER):
		return no("there is no such process", "find its PID with tasklist or the task manager")
	case errors.Is(err, windows.ERROR_ACCESS_DENIED):
		return no("it may not be read",
			"run seedwalk as its user, or from a prompt that was started as administrator")
	case err != nil:
		return no("it cannot be opened: "+err.Error(), "try again")
	}
	defer p.Close()
	switch state, why := judge(p); {
	case p.Ended():
		return no("it has ended", "an ended process has no stacks")
	case state == suspended.Refused:
		return no(why, startIt)
	case state == suspended.NoRuntime:
		return no("it has not loaded a .NET runtime", startIt)
	}
	return nil
}

// A process seen for the first time may be starting, which takes a moment; one that has run for long is
// judged at once.
const (
	lookEvery = 100 * time.Millisecond
	lookLimit = 5 * time.Second
)

// judge examines a process until its kind is known.
func judge(p *suspended.Prospect) (suspended.State, string) {
	for begin := time.Now(); ; time.Sleep(lookEvery) {
		state, why := p.Look()
		if state != suspended.NoRuntime || p.Ended() || time.Since(begin) > lookLimit ||
			!p.Doubted() && time.Since(begin) > lookLimit/10 {
			return state, why
		}
	}
}

// attach starts to sample the process. r.exited is closed when the process has ended.
func (r *run) attach() error {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(r.opt.PID))
	if err == nil {
		if err = r.srv.engine(r.opt.PID); err != nil {
			windows.CloseHandle(h)
		}
	}
	if err != nil {
		return options.Refuse("--pid", err.Error(), "try again")
	}
	go func() {
		defer windows.CloseHandle(h)
		windows.WaitForSingleObject(h, windows.INFINITE)
		close(r.exited)
	}()
	return nil
}
