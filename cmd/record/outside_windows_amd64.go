package record

import (
	"fmt"
	"net"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/listen"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/process/program"
	"github.com/seedwalk/seedwalk/sample/suspended"
)

// sampled refuses a connection: on Windows, no recorded process connects.
func (s *server) sampled(c listen.Stream, _ int) (listen.Stream, error) {
	c.Close()
	return nil, fmt.Errorf("a profiler connected, although processes are sampled from outside")
}

// followEvery is how often processes are looked for.
const followEvery = 20 * time.Millisecond

// follow finds the command's .NET processes, and samples them.
func (r *run) follow() {
	if r.opt.Mode == options.ModeProbe {
		go r.srv.followTree(r.cmd.Process.Pid, r.exited)
	}
}

// followTree samples the descendants of root until root has ended.
func (s *server) followTree(root int, ended <-chan struct{}) {
	f, prospects := program.NewFamily(root), map[int]*prospect{}
	defer f.Close()
	for {
		select {
		case <-ended:
			for _, p := range prospects {
				p.close()
			}
			return
		case <-time.After(followEvery):
		}
		f.Grow()
		for _, pid := range f.PIDs() {
			if prospects[pid] == nil {
				prospects[pid] = new(prospect)
			}
			s.consider(pid, prospects[pid])
		}
	}
}

// prospect is a process that may have a runtime.
type prospect struct {
	*suspended.Prospect // nil: the process cannot be read, or has ended
	decided             bool
}

func (p *prospect) close() {
	if p.Prospect != nil {
		p.Prospect.Close()
		p.Prospect = nil
	}
}

// consider starts to sample a process as soon as its runtime can be read.
func (s *server) consider(pid int, p *prospect) {
	if !p.decided && p.Prospect == nil { // it is being created
		p.Prospect, _ = suspended.OpenProspect(pid)
	}
	if p.decided || p.Prospect == nil {
		return
	}
	state, why := p.Look()
	switch state {
	case suspended.Ready:
		if err := s.engine(pid); err != nil {
			s.refuse(err.Error())
		}
	case suspended.Refused:
		s.note(fmt.Sprintf("process %d (%s) is not sampled: %s; use --mode snapshot", pid,
			listen.ProcessName(pid), why))
	default:
		return
	}
	p.decided = true
	p.close()
}

func (s *server) engine(pid int) error {
	here, there := net.Pipe()
	e, err := suspended.New(pid, s.outside, there)
	if err != nil {
		return err
	}
	s.add(running(e, here, there), pid)
	return nil
}
