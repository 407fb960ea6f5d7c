package symbol

import (
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// What .gnu_debuglink names may be a pipe, to which nobody ever writes.
func TestDebugLinkToPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, unix.Mkfifo(pipe, 0o600))
	sum := make(chan uint32, 1)
	go func() { sum <- fileSum(pipe) }()
	select {
	case s := <-sum:
		expect.Equal(t, s, 0, "the checksum of a pipe")
	case <-time.After(10 * time.Second):
		t.Error("the reader waits for the pipe's other end")
	}
}
