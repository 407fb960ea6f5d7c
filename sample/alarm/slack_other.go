//go:build !linux

package alarm

// EnlargeSlack does nothing: only Linux has a timer slack.
func EnlargeSlack() {}

// WithUsualSlack calls start.
func WithUsualSlack(start func() error) error { return start() }
