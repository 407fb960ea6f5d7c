package outside

import (
	"sync"
	"time"
)

// alarm goes off at the time that it was set to last. What waits for it is woken though
// that was changed meanwhile.
type alarm interface {
	set(after time.Duration) // by any goroutine, at any time
	wait() bool              // until it goes off, once; false: it is closed
	close()
}

// bell is an alarm by Go's own timers.
type bell struct {
	timer  *time.Timer
	closed chan struct{}
	once   sync.Once
}

func newBell() *bell {
	b := &bell{timer: time.NewTimer(time.Hour), closed: make(chan struct{})}
	b.timer.Stop()
	return b
}

func (b *bell) set(after time.Duration) { b.timer.Reset(after) }

func (b *bell) wait() bool {
	select {
	case <-b.timer.C:
		return true
	case <-b.closed:
		return false
	}
}

func (b *bell) close() {
	b.timer.Stop()
	b.once.Do(func() { close(b.closed) })
}
