package alarm

import (
	"sync"
	"time"
)

// Alarm wakes a goroutine at the time that was set last, even if that changed while the goroutine was
// waiting.
type Alarm interface {
	Set(after time.Duration) // may be called by any goroutine at any time
	Wait() bool              // blocks until the alarm goes off, once; false: it is closed
	Close()
}

// goTimer is an alarm by Go's own timers.
type goTimer struct {
	timer  *time.Timer
	closed chan struct{}
	once   sync.Once
}

func newGoTimer() *goTimer {
	b := &goTimer{timer: time.NewTimer(time.Hour), closed: make(chan struct{})}
	b.timer.Stop()
	return b
}

func (b *goTimer) Set(after time.Duration) { b.timer.Reset(after) }

func (b *goTimer) Wait() bool {
	select {
	case <-b.timer.C:
	case <-b.closed:
	}
	select {
	case <-b.closed:
		return false
	default:
		return true
	}
}

func (b *goTimer) Close() {
	b.timer.Stop()
	b.once.Do(func() { close(b.closed) })
}
