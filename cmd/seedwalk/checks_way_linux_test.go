package main

import (
	"os"
	"strings"
	"testing"
)

// What is left to the probe is said with its cause, and nothing without one.
func TestByProbe(t *testing.T) {
	for _, c := range []struct{ unread, unseen, want, not string }{
		{"", "", "", "probe"},
		{"no leave", "", "the probe reads the program's memory, on a thread of the runtime, because the kernel refuses it to seedwalk (no leave)", "blocked"},
		{"", "not shown", "blocked threads get a signal each time that they have run, because the kernel does not say where they wait (not shown)", "memory"},
		{"no leave", "not shown", "(no leave); blocked threads", "\n"},
	} {
		if got := byProbe(c.unread, c.unseen); !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%q, %q: %q", c.unread, c.unseen, got)
		}
	}
	if unread, unseen := refusedOf(os.Getpid()); unread+unseen != "" {
		t.Errorf("of ourselves: %q, %q", unread, unseen)
	}
}
