package live

import (
	"fmt"
	"time"

	"github.com/seedwalk/seedwalk/context"
)

// Stop is the result of stopping a thread.
type Stop struct {
	TID  int
	Held time.Duration // how long we kept it stopped
	Err  error         // why it could not be read: a *StopError
}

// Stood is what a stopped thread reports besides its registers.
type Stood struct {
	Base uint64 // its thread pointer, near its stack's end; 0 = unknown
	Call int64  // the number of the system call in which it waits; negative = none, or unknown (ARM64)
}

// StopWhy is why a thread cannot be stopped.
type StopWhy uint8

const (
	Gone     StopWhy = iota // it has ended
	Denied                  // access denied
	Traced                  // another process traces it
	Asleep                  // the kernel does not let it be interrupted
	Foreign                 // its registers are those of another machine
	Untraced                // ptrace is not available: an emulator has none
)

// StopError reports why a thread could not be stopped.
type StopError struct {
	TID    int
	Why    StopWhy
	Tracer int // for Traced: the tracer
}

func (e *StopError) Error() string {
	switch e.Why {
	case Gone:
		return fmt.Sprintf("thread %d has ended", e.TID)
	case Denied:
		return fmt.Sprintf("thread %d may not be stopped", e.TID)
	case Traced:
		return fmt.Sprintf("thread %d is traced by process %d, and the kernel allows one tracer",
			e.TID, e.Tracer)
	case Asleep:
		return fmt.Sprintf("thread %d sleeps in the kernel and cannot be interrupted", e.TID)
	case Untraced:
		return fmt.Sprintf("thread %d cannot be stopped: this system has no ptrace, as under qemu-user; record --pid and stack --core work without it", e.TID)
	}
	return fmt.Sprintf("thread %d runs code that is not for %s", e.TID, context.Host())
}
