package continuous

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Reason is the kind of a failure.
type Reason string

// Reasons of failures.
const (
	ReasonBegin   Reason = "begin"   // the sampling of a process could not begin
	ReasonEnd     Reason = "end"     // it ended, though the process lives
	ReasonSamples Reason = "samples" // a recording got no samples of a session
	ReasonWrite   Reason = "write"   // a recording or a profile could not be written
)

// reasons are all Reasons, in the order of Counters.Failed.
var reasons = [...]Reason{ReasonBegin, ReasonEnd, ReasonSamples, ReasonWrite}

// Failure is an error with a Reason.
type Failure struct {
	Reason Reason
	Err    error
}

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// errEnded means that a session has ended unexpectedly.
var errEnded = errors.New("its samples have ended")

// fail counts and reports a failure. It returns false, and does neither, if the process has ended.
func (a *Agent) fail(p process, err error) bool {
	if !alive(p) {
		return false
	}
	reason := reasonOf(err)
	for i := range reasons {
		if reasons[i] == reason {
			a.count.Failed[i].Add(1)
		}
	}
	a.cfg.Say(fmt.Sprintf("process %d (%s) is not being recorded (%s): %v", p.pid, p.name, reason, err))
	return true
}

// reasonOf returns the reason of an error. An error that is no Failure comes from a recording. If it is
// about a file, an output could not be written, because a recording has no other files.
func reasonOf(err error) Reason {
	var f *Failure
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &f):
		return f.Reason
	case errors.As(err, &path), errors.As(err, &link):
		return ReasonWrite
	}
	return ReasonSamples
}
