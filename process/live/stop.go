package live

import (
	"fmt"
	"time"

	"github.com/seedwalk/seedwalk/context"
)

// Stop tells how a thread was stopped.
type Stop struct {
	TID  int
	Held time.Duration // how long it stood for us
	Err  error         // why it could not be looked at: a *StopError
}

// Stood is what is known of a thread that stands, beside its registers.
type Stood struct {
	Base uint64 // where its C library keeps it, on its stack's end; 0 = not known
	Call int64  // the number of the system call that it waits in; negative = none, or unknown (ARM64)
}

// StopWhy says why a thread cannot be stopped.
type StopWhy uint8

const (
	Gone     StopWhy = iota // it has ended
	Denied                  // we may not
	Traced                  // another process traces it
	Asleep                  // the kernel does not let it be interrupted
	Foreign                 // its registers are not those of the machine that we are for
	Untraced                // there is no ptrace here: an emulator has none
)

// StopError says why a thread could not be stopped.
type StopError struct {
	TID    int
	Why    StopWhy
	Tracer int // of Traced
}

func (e *StopError) Error() string {
	switch e.Why {
	case Gone:
		return fmt.Sprintf("thread %d has ended", e.TID)
	case Denied:
		return fmt.Sprintf("thread %d may not be stopped", e.TID)
	case Traced:
		return fmt.Sprintf("thread %d is traced by process %d, and the kernel allows one tracer", e.TID, e.Tracer)
	case Asleep:
		return fmt.Sprintf("thread %d sleeps in the kernel and cannot be interrupted", e.TID)
	case Untraced:
		return fmt.Sprintf("thread %d cannot be stopped: this system has no ptrace, an emulator's for programs (qemu-user) mostly; record --pid and stack --core need none", e.TID)
	}
	return fmt.Sprintf("thread %d runs code that is not for %s", e.TID, context.Host())
}
