package engine

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/suspended"
)

const (
	// givenFlag is the flag that gives the handle of the probe's section, which this process inherits.
	givenFlag = "section"
	lookEvery = 20 * time.Millisecond
	beatEvery = 100 * time.Millisecond
)

// pipes is the connection to the client: what the client sends, and what it receives.
type pipes struct{ in, out *os.File }

func (p pipes) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p pipes) Write(b []byte) (int, error) { return p.out.Write(b) }
func (p pipes) Close() error                { return p.out.Close() }

func client() (pipes, error) {
	for _, f := range []*os.File{os.Stdin, os.Stdout} {
		kind, err := windows.GetFileType(windows.Handle(f.Fd()))
		if err != nil || kind != windows.FILE_TYPE_PIPE {
			return pipes{}, errors.New("its input and output are not pipes; " + onlyClients)
		}
	}
	return pipes{os.Stdin, os.Stdout}, nil
}

// serve samples the process until the process ends, or the client closes its pipe. section is the handle of
// the probe's section.
func serve(c pipes, pid int, section uint64, cfg sampler.Config) error {
	f, err := probe.Inherited(windows.Handle(section))
	if err != nil {
		return err
	}
	defer f.Close()
	stop, started := endOf(c), beat(f)
	if err := await(pid, stop); err != nil {
		return err
	}
	cfg.File = f
	q := newQueue()
	e, err := suspended.New(pid, cfg, q)
	if err != nil {
		return err
	}
	close(started)
	run(e, pid, q, c, stop)
	return nil
}

// beat shows the client that the helper lives, until the returned channel is closed. Reading a runtime's
// images takes seconds on a busy machine.
func beat(f *probe.File) chan<- struct{} {
	started := make(chan struct{})
	go func() {
		for {
			select {
			case <-started:
				return
			case <-time.After(beatEvery):
				f.Beat()
			}
		}
	}()
	return started
}

// await waits for a runtime that can be sampled. It returns an error if the runtime can never be sampled, and
// nil also if the process has ended or stop is closed.
func await(pid int, stop <-chan struct{}) error {
	p, err := suspended.OpenProspect(pid)
	if err != nil {
		return err
	}
	defer p.Close()
	for {
		state, why := p.Look()
		if state == suspended.Refused {
			return errors.New(why)
		}
		if state == suspended.Ready || p.Ended() {
			return nil
		}
		select {
		case <-stop:
			return nil
		case <-time.After(lookEvery):
		}
	}
}
