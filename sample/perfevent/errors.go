package perfevent

import "errors"

// The meaning of a failure for the caller. An *Error wraps one of them, or none.
var (
	// ErrRefused means that the kernel does not permit the event: perf_event_paranoid, a filter of system
	// calls, or a process of another user.
	ErrRefused = errors.New("the kernel permits no perf events here")
	// ErrLimit means that a limit is reached: of open files, locked memory, or kernel memory.
	ErrLimit = errors.New("a limit of the system is reached")
	// ErrGone means that the thread has ended.
	ErrGone = errors.New("the thread has ended")
)

// Error is a failed system call.
type Error struct {
	Op   string // the call
	Kind error  // ErrRefused, ErrLimit, ErrGone, or nil
	Err  error  // the kernel's error number
}

// Error implements error.
func (e *Error) Error() string { return "perfevent: " + e.Op + ": " + e.Err.Error() }

// Unwrap returns the error number and, if there is one, its meaning.
func (e *Error) Unwrap() []error {
	if e.Kind == nil {
		return []error{e.Err}
	}
	return []error{e.Kind, e.Err}
}
