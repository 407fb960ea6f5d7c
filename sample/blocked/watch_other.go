//go:build !linux

package blocked

import (
	"errors"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
)

// Watch would read the stacks of waiting threads. It is not supported on this system.
type Watch struct{}

// New returns an error.
func New(pid int, threshold time.Duration, a *waits.Analysis) (*Watch, error) {
	return nil, errors.New("native frames of waiting threads are found on Linux only")
}

// Close does nothing.
func (w *Watch) Close() Stats { return Stats{} }

// Begin does nothing.
func (w *Watch) Begin(*waits.Wait, []uint64) {}

// End does nothing.
func (w *Watch) End(*waits.Wait) {}
