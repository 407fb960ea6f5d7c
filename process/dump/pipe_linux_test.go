package dump

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// A core may name a pipe as the file of an image.
func TestImageIsPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, unix.Mkfifo(pipe, 0o600))
	m, found := NewModules(&Core{}, nil), make(chan *image, 1)
	go func() { found <- m.file(pipe) }()
	select {
	case f := <-found:
		expect.True(t, f.file == nil && strings.Contains(f.err.Error(), "is not a regular file"), "%v", f.err)
	case <-time.After(10 * time.Second):
		t.Error("the reader waits for the pipe's other end")
	}
}
