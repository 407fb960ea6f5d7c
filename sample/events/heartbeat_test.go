package events

import (
	"testing"
	"time"
)

// lateAlarm is an alarm whose goroutine notices its end when it is let go.
type lateAlarm struct{ closed, letGo chan struct{} }

func (a lateAlarm) Set(time.Duration) {}
func (a lateAlarm) Close()            { close(a.closed) }
func (a lateAlarm) Wait() bool {
	<-a.closed
	<-a.letGo
	return false
}

// Stop returns when nothing uses the file any more, however late that is: the engine unmaps it then.
func TestHeartbeatStop(t *testing.T) {
	a := lateAlarm{make(chan struct{}), make(chan struct{})}
	h := &Heartbeat{alarm: a, ended: make(chan struct{})}
	go h.run()
	stopped := make(chan struct{})
	go func() { h.Stop(); close(stopped) }()
	<-a.closed
	select {
	case <-stopped:
		t.Fatal("the file would be unmapped, or stay mapped for ever, while it is in use")
	case <-time.After(1200 * time.Millisecond): // longer than it once waited
	}
	close(a.letGo)
	<-stopped
}
