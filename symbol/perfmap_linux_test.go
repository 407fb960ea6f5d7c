package symbol

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// A perf map is refused unless it is a regular file of the right user, reached without links, and written
// since the process started.
func TestPerfMapHostile(t *testing.T) {
	user, other := uint32(os.Getuid()), uint32(os.Getuid()+1)
	write := func(path string) error { return os.WriteFile(path, []byte("1000 10 x\n"), 0o600) }
	for _, c := range []struct {
		name  string
		make  func(root, file string) error
		user  uint32
		since time.Duration // start of the process, from now
		want  bool
	}{
		{"regular file", func(_, file string) error { return write(file) }, user, -time.Minute, true},
		{"none", func(_, _ string) error { return nil }, user, -time.Minute, false},
		{"file of a former process",
			func(_, file string) error { return write(file) }, user, time.Minute, false},
		{"link", func(root, file string) error {
			return firstError(write(filepath.Join(root, "x")), os.Symlink(filepath.Join(root, "x"), file))
		}, user, -time.Minute, false},
		{"folder", func(_, file string) error { return os.Mkdir(file, 0o700) }, user, -time.Minute, false},
		{"pipe", func(_, file string) error { return unix.Mkfifo(file, 0o600) }, user, -time.Minute, false},
		{"tmp is a link", func(root, file string) error {
			return firstError(write(file), os.Rename(filepath.Join(root, "tmp"), filepath.Join(root, "real")),
				os.Symlink("real", filepath.Join(root, "tmp")))
		}, user, -time.Minute, false},
		{"another user's", func(_, file string) error {
			if user != 0 {
				return write(file)
			}
			return firstError(write(file), os.Chown(file, 12345, 12345)) // root's files are trusted
		}, other, -time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			must.Do(t, firstError(os.Mkdir(filepath.Join(dir, "tmp"), 0o700),
				c.make(dir, filepath.Join(dir, "tmp", "perf-7.map"))))
			root := must.Get(unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0))(t)
			defer unix.Close(root)
			f := openOwned(root, 7, c.user, time.Now().Add(c.since))
			expect.True(t, (f != nil) == c.want, "opened: %v, want %v", f != nil, c.want)
		})
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestIdentity(t *testing.T) {
	inner, user, ok := identity(os.Getpid())
	expect.True(t, inner == os.Getpid() && user == uint32(os.Geteuid()) && ok, "%d, %d, %v", inner, user, ok)
	if began := startOf(os.Getpid()); time.Since(began) < 0 || time.Since(began) > time.Hour {
		t.Errorf("this process began at %v", began)
	}
}
