package record

import (
	"errors"

	"github.com/seedwalk/seedwalk/cmd/record/listen"
	"github.com/seedwalk/seedwalk/cmd/record/options"
)

func attachable(*options.Options) *options.Refusal {
	return options.Refuse("--pid", "running processes are recorded on Linux, and on Windows on x86-64",
		"start it with seedwalk record -- COMMAND")
}

func (r *run) attach() error { return errors.New("not on this system") }

func (r *run) follow() {}

func (s *server) sampled(c listen.Stream, _ int) (listen.Stream, error) {
	c.Close()
	return nil, errors.New("there is no probe for this system")
}
