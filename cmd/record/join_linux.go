package record

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/inflow"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/sample/sampler"
)

// join takes samples from another recording of the process, if there is one. If that recording cannot serve
// the options, the error is a *Refusal.
func (r *run) join() error {
	cfg, part := r.srv.outside, &r.opt.Part
	c, tool, err := inflow.Join(r.opt.PID,
		inflow.Request{CPU: !cfg.NoCPU, Wall: !cfg.NoWall, From: part.From, Until: part.Until})
	if err != nil {
		return err
	}
	if cfg.Events != 0 || r.opt.Raw != "" || r.opt.Clock != "" && r.opt.Clock != sampler.ClockAuto {
		c.Close()
		return options.Refuse(fmt.Sprintf("process %d", r.opt.PID),
			fmt.Sprintf("another recording of it is running (process %d), which shares only CPU and wall samples", tool),
			"wait for the other to end, or leave out --events, --clock, and --raw")
	}
	if part.Set() {
		p := r.srv.add(joinedStream{c}, r.opt.PID)
		go func() { <-p.Gone; close(r.exited) }()
		return nil
	}
	r.srv.note(fmt.Sprintf("samples come from another recording of the process (seedwalk process %d), at its rate", tool))
	p := r.srv.add(joinedStream{c}, r.opt.PID)
	go r.succeed(p)
	return nil
}

// joinOrClaim joins another recording of the process, or reserves the right to load the probe until release
// is called: then the error is that of join. It waits while another recording loads the probe.
func (r *run) joinOrClaim() (release func(), err error) {
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		release, claimed := inflow.Claim(r.opt.PID)
		err, refused := r.join(), (*options.Refusal)(nil)
		if err == nil || claimed || errors.As(err, &refused) || time.Since(begin) > startLimit {
			return release, err
		}
		reuse(r.opt) // the other recording's probe
	}
}

// joinPart joins the recording that samples the process, for a part of its time.
func (r *run) joinPart() error {
	err := r.join()
	if refused := (*options.Refusal)(nil); err == nil || errors.As(err, &refused) {
		return err
	}
	return options.Refuse(fmt.Sprintf("process %d", r.opt.PID), err.Error(), "try again")
}

// succeed takes over if the other recording has ended and this one continues.
func (r *run) succeed(p *inflow.Process) {
	<-p.Gone
	at := time.Now()
	for !r.srv.isSettling() && time.Since(at) < startLimit && syscall.Kill(r.opt.PID, 0) == nil {
		release, claimed := inflow.Claim(r.opt.PID)
		joined := r.join() == nil
		entered := !joined && claimed && r.enterAgain()
		release()
		switch {
		case joined:
			return
		case entered:
			r.srv.note(fmt.Sprintf("the other recording ended; this one sampled the process itself %.1f s later", time.Since(at).Seconds()))
			return
		}
		time.Sleep(250 * time.Millisecond)
	}
	if !r.srv.isSettling() && syscall.Kill(r.opt.PID, 0) == nil {
		r.srv.note("the other recording ended at " + at.Format(time.TimeOnly) +
			"; there are no samples after that: the probe did not connect again")
	}
}

// enterAgain makes the probe connect to this tool. It returns false if the probe does not do so soon.
func (r *run) enterAgain() bool {
	before := len(r.srv.all())
	reuse(r.opt)
	if client, err := diagnostics.Process(r.opt.PID); err == nil {
		r.load(client)
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if len(r.srv.all()) > before {
			return true
		}
	}
	return false
}
