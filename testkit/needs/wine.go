package needs

import (
	"regexp"
	"testing"
)

// winesOwn matches Wine's message that one of its services died. Services are started together with a program
// and share its output. Sometimes ntoskrnl.exe of Wine 8 reads through a nil pointer.
var winesOwn = regexp.MustCompile(`(?m)^wine: Unhandled .* starting debugger\.\.\.\r?\n`)

// WithoutWine returns the standard error of a program without Wine's messages that one of its services died.
// If the program itself dies, its exit code is wrong, so the message is not needed.
func WithoutWine(t testing.TB, stderr string) string {
	t.Helper()
	if own := winesOwn.FindString(stderr); own != "" {
		t.Logf("not of the program: %s", own)
	}
	return winesOwn.ReplaceAllString(stderr, "")
}
