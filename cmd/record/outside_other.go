//go:build !linux && !(windows && amd64)

package record

import "errors"

// hasProbe says that there is a probe for this system.
const hasProbe = false

const needsLibrary = true

func (o *Options) unforeseen() string { return "" }

func (r *run) follow() {}

// errAnswered says that a connection was a question, and has been answered.
var errAnswered = errors.New("answered")

func (s *server) sampled(c stream, _ int) (stream, error) {
	c.Close()
	return nil, errors.New("there is no probe for this system")
}

func (s *server) awaitEngines(func(string)) {}
