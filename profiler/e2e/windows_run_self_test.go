package e2e

import "testing"

// winesOwn matches the messages of Wine's services, and no other lines.
func TestWinesOwn(t *testing.T) {
	const said = "seedwalk: one line\nwine: Unhandled page fault on read access to 0000000000000008 at address 000000031CAA2391 (thread 008c), starting debugger...\nseedwalk: wine: Unhandled\n"
	const want = "seedwalk: one line\nseedwalk: wine: Unhandled\n"
	if got := winesOwn.ReplaceAllString(said, ""); got != want {
		t.Errorf("%q", got)
	}
}
