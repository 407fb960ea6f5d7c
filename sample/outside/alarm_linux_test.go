package outside

import (
	"testing"
	"time"
)

func alarms(t *testing.T, f func(t *testing.T, a alarm)) {
	for _, c := range []struct {
		name string
		a    alarm
	}{{"timer file", newAlarm()}, {"bell", newBell()}} {
		t.Run(c.name, func(t *testing.T) {
			if _, ok := c.a.(*bell); ok != (c.name == "bell") {
				t.Skip("SKIPPED-CHECK: the kernel gives no timer that can be waited for")
			}
			f(t, c.a)
			c.a.close()
		})
	}
}

// waited fails if what is waited for does not come at all.
func waited(t *testing.T, what string, done <-chan bool) (ok bool) {
	t.Helper()
	select {
	case ok = <-done:
	case <-time.After(10 * time.Second):
		t.Fatal(what + ": still waits")
	}
	return ok
}

// An alarm goes off once for each time that it is set, and not before what it was set to last.
func TestAlarm(t *testing.T) {
	const soon, late = 5 * time.Millisecond, 60 * time.Millisecond
	alarms(t, func(t *testing.T, a alarm) {
		done := make(chan bool, 1)
		wait := func() { done <- a.wait() }
		begin := time.Now()
		a.set(late)
		if a.wait(); time.Since(begin) < late {
			t.Errorf("went off after %v", time.Since(begin))
		}
		a.set(soon)
		time.Sleep(2 * soon) // it has gone off, and nobody has waited
		begin = time.Now()
		a.set(late)
		if a.wait(); time.Since(begin) < late {
			t.Errorf("put off, it went off after %v", time.Since(begin))
		}
		begin = time.Now()
		a.set(soon)
		go wait()
		a.set(late) // while it is waited for, or just before
		if waited(t, "put off", done); time.Since(begin) < late {
			t.Errorf("put off while it was waited for, it went off after %v", time.Since(begin))
		}
		a.set(time.Hour)
		go wait()
		time.Sleep(soon)
		a.set(0)
		if !waited(t, "set to go off at once", done) {
			t.Error("closed")
		}
		go wait()
		time.Sleep(soon)
		if len(done) > 0 {
			t.Error("went off twice")
		}
		if a.close(); waited(t, "closed", done) {
			t.Error("went off when it was closed")
		}
		a.set(1) // by a Stop that comes late
	})
}

// Stop ends a sleep whenever it comes: before it, in it, or at the moment at which it begins.
func TestStopWakes(t *testing.T) {
	alarms(t, func(t *testing.T, a alarm) {
		for i := range 300 {
			e := &sampler{alarm: a}
			done := make(chan bool, 1)
			go func() { e.pause(time.Hour); done <- true }()
			switch i % 3 {
			case 1:
				time.Sleep(time.Duration(i) * time.Microsecond)
			case 2:
				time.Sleep(time.Millisecond)
			}
			e.Stop()
			waited(t, "stopped", done)
		}
	})
}
