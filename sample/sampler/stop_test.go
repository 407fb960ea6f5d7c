package sampler

import (
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/sample/alarm"
)

// Stop ends a sleep at any moment: before it, during it, or just as it begins.
func TestStopWakes(t *testing.T) {
	for i := range 300 {
		e := &Base{Alarm: alarm.New()}
		done := make(chan bool, 1)
		go func() { e.Pause(time.Hour); done <- true }()
		switch i % 3 {
		case 1:
			time.Sleep(time.Duration(i) * time.Microsecond)
		case 2:
			time.Sleep(time.Millisecond)
		}
		e.Stop()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("stopped: still sleeps")
		}
	}
}
