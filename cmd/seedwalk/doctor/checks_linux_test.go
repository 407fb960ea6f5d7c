package doctor

import (
	"os"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// What is left to the probe is said with its cause, and nothing without one.
func TestByProbe(t *testing.T) {
	for _, c := range []struct{ unread, unseen, want, not string }{
		{"", "", "", "probe"},
		{"no leave", "", "the probe reads the program's memory, on a thread of the runtime, because the kernel refuses it to seedwalk (no leave)", "blocked"},
		{"", "not shown", "each blocked thread gets a signal after it has run, because the kernel does not say where it waits (not shown)", "memory"},
		{"no leave", "not shown", "(no leave); each blocked thread", "\n"},
	} {
		got := byProbe(c.unread, c.unseen)
		expect.True(t, strings.Contains(got, c.want) && !strings.Contains(got, c.not),
			"%q, %q: %q", c.unread, c.unseen, got)
	}
	unread, unseen := refusedOf(os.Getpid())
	expect.True(t, unread+unseen == "", "of ourselves: %q, %q", unread, unseen)
}

func TestHeldBack(t *testing.T) {
	const status = "Name:\tcat\nSigQ:\t0/127\nSigPnd:\t0000004000000000\nSigBlk:\t%b\nSigIgn:\t%i\nSigCgt:\t0000004000000000\n"
	const on, off = "0000004000000000", "0000003fffffffff"
	for _, c := range []struct{ blk, ign, want string }{{off, off, ""},
		{on, off, "blocked"}, {off, on, "ignored"}} {
		s := strings.NewReplacer("%b", c.blk, "%i", c.ign).Replace(status)
		expect.Equal(t, heldBack(s, 39), c.want, c)
	}
}
