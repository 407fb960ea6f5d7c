package report

import "testing"

func TestCounted(t *testing.T) {
	for n, want := range map[int64]string{0: "0 threads", 1: "1 thread",
		2: "2 threads", 1234: "1,234 threads"} {
		if got := counted(n, "thread"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// The text does not say that there are no waits below a line about idle waits.
func TestNoWaits(t *testing.T) {
	for idle, want := range map[int]string{0: "no waits.", 1: "no other waits."} {
		if got := noWaits(idle); got != want {
			t.Errorf("%d idle: %q, want %q", idle, got, want)
		}
	}
}
