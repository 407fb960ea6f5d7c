package alarm

import (
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

func alarms(t *testing.T, f func(t *testing.T, a Alarm)) {
	for _, c := range []struct {
		name string
		a    Alarm
	}{{"timer file", New()}, {"bell", newGoTimer()}} {
		t.Run(c.name, func(t *testing.T) {
			if _, ok := c.a.(*goTimer); ok != (c.name == "bell") {
				t.Skip("SKIPPED-CHECK: the kernel gives no timer that can be waited for")
			}
			f(t, c.a)
			c.a.Close()
		})
	}
}

// waited fails the test if the event never comes.
func waited(t *testing.T, what string, done <-chan bool) (ok bool) {
	t.Helper()
	select {
	case ok = <-done:
	case <-time.After(10 * time.Second):
		t.Fatal(what + ": still waits")
	}
	return ok
}

// Setting an alarm replaces its time, and discards an expiry that nothing has waited for. It goes off once,
// at the time that was set last.
func TestAlarm(t *testing.T) {
	const soon, late = 5 * time.Millisecond, 60 * time.Millisecond
	alarms(t, func(t *testing.T, a Alarm) {
		done := make(chan bool, 1)
		wait := func() { done <- a.Wait() }
		begin := time.Now()
		a.Set(late)
		a.Wait()
		expect.True(t, time.Since(begin) >= late, "went off after %v", time.Since(begin))
		a.Set(soon)
		time.Sleep(2 * soon) // it has gone off while nothing waited
		begin = time.Now()
		a.Set(late)
		a.Wait()
		expect.True(t, time.Since(begin) >= late, "put off, it went off after %v", time.Since(begin))
		begin = time.Now()
		a.Set(soon)
		go wait()
		a.Set(late) // during the wait, or just before it
		if waited(t, "put off", done); time.Since(begin) < late {
			t.Errorf("put off while it was waited for, it went off after %v", time.Since(begin))
		}
		a.Set(time.Hour)
		go wait()
		time.Sleep(soon)
		a.Set(0)
		expect.True(t, waited(t, "set to go off at once", done), "closed")
		go wait()
		time.Sleep(soon)
		expect.True(t, len(done) == 0, "went off twice")
		a.Close()
		expect.True(t, !waited(t, "closed", done), "went off when it was closed")
		a.Set(1) // late, which is allowed
		time.Sleep(soon)
		expect.True(t, !a.Wait(), "went off after it was closed")
	})
}
