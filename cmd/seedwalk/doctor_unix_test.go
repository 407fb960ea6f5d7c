//go:build unix

package main

import (
	"strings"
	"testing"
)

// checksHere are those of this platform that must find nothing on any machine.
var checksHere = []string{"system", "environment", "signal 39", "socket", "output"}

func TestHeldBack(t *testing.T) {
	const status = "Name:\tcat\nSigQ:\t0/127\nSigPnd:\t0000004000000000\nSigBlk:\t%b\nSigIgn:\t%i\nSigCgt:\t0000004000000000\n"
	const on, off = "0000004000000000", "0000003fffffffff"
	for _, c := range []struct{ blk, ign, want string }{{off, off, ""}, {on, off, "blocked"}, {off, on, "ignored"}} {
		s := strings.NewReplacer("%b", c.blk, "%i", c.ign).Replace(status)
		if got := heldBack(s, 39); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
