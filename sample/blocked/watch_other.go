//go:build !linux

package blocked

import (
	"errors"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
)

// Watch looks at threads that wait; not on this system.
type Watch struct{}

// New refuses.
func New(pid int, threshold time.Duration, a *waits.Analysis) (*Watch, error) {
	return nil, errors.New("native frames of waiting threads are found on Linux only")
}

// Close ends the watching.
func (w *Watch) Close() Stats { return Stats{} }

// Begin is told of a wait that begins.
func (w *Watch) Begin(*waits.Wait, []uint64) {}

// End is told of a wait that ended.
func (w *Watch) End(*waits.Wait) {}
