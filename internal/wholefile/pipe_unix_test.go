//go:build unix

package wholefile

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// A pipe is refused without waiting for a writer.
func TestPipe(t *testing.T) {
	pipe := filepath.Join(tempdir.New(t), "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	for name, f := range map[string]func(string, int64) ([]byte, error){"Read": Read, "Map": Map} {
		done := make(chan error, 1)
		go func() { _, err := f(pipe, 5); done <- err }()
		select {
		case err := <-done:
			var refused *Error
			expect.True(t, errors.As(err, &refused) && refused.Reason == NotRegular, "%s: %v", name, err)
		case <-time.After(10 * time.Second):
			t.Errorf("%s waits for the pipe's other end", name)
		}
	}
}
