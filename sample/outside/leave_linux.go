package outside

import (
	"time"

	"github.com/seedwalk/seedwalk/sample/probe"
)

// disarm ends the timers and restores the signal handlers. One thread that takes the signal is enough:
// the threads get it in turn until one answers. disarm returns false if none answers within the given
// time; it may then be called again.
func (e *Engine) disarm(within time.Duration) bool {
	e.file.End()
	limit := time.Now().Add(within)
	for {
		e.Relist()
		e.List(time.Now(), e.file.Helper()) // threads with a slot may have ended since
		if e.askToLeave(limit) || e.left(lateStep) {
			return true
		}
		if time.Now().After(limit) || !e.alive() {
			return false
		}
	}
}

// askToLeave sends the signal to one thread after another, until one has answered. It returns false if none
// has before limit.
func (e *Engine) askToLeave(limit time.Time) bool {
	for _, t := range e.LeaveOrder() {
		if time.Now().After(limit) {
			return false
		}
		if e.ask(t, probe.OpLeave) != sent {
			continue
		}
		if e.left(50 * time.Millisecond) {
			return true
		}
	}
	return false
}

// soonLimit is how long the end of the stream waits for the threads' answers. lateLimit is the same for
// threads that hardly get a processor. lateStep is the wait after all threads have been asked.
const (
	soonLimit = 250 * time.Millisecond
	lateLimit = 8 * time.Second
	lateStep  = 250 * time.Millisecond
)

// left waits until the probe has restored everything. It returns false after limit or if the process
// ends.
func (e *Engine) left(limit time.Duration) bool {
	for begin := time.Now(); !e.file.Left(); {
		if time.Since(begin) > limit || !e.alive() {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}
