package record

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// The socket belongs to the user who is let in; the folder does not, so that nobody puts
// links into it.
func TestAdmit(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED-CHECK: only root gives files away")
	}
	const user = 65534
	s, p, err := newListener(tempdir.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	defer s.close()
	library := p.path(probe.LibraryName)
	if err := os.WriteFile(library, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s.admits(&unix.Ucred{Uid: user}) {
		t.Error("another user may connect before that is asked for")
	}
	if err := s.admit(user, p); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path  string
		owner uint32
		mode  fs.FileMode
	}{
		{p.dir, 0, 0o711}, {s.path, user, 0o600}, {library, 0, 0o755}, {p.path(lockName), 0, 0o600},
	} {
		info, err := os.Lstat(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != c.owner || info.Mode().Perm() != c.mode {
			t.Errorf("%s: user %d, mode %o; want %d, %o", filepath.Base(c.path), owner, info.Mode().Perm(), c.owner, c.mode)
		}
	}
	if !s.admits(&unix.Ucred{Uid: user}) || s.admits(&unix.Ucred{Uid: user - 1}) {
		t.Error("others than the one user may connect, or that one may not")
	}
}

func TestOpenToAll(t *testing.T) {
	dir, err := os.MkdirTemp("", "seedwalk-open-")
	if err != nil || os.Chmod(dir, 0o755) != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for path := dir; path != "/"; path = filepath.Dir(path) {
		if info, err := os.Stat(path); err != nil || info.Mode()&1 == 0 {
			t.Skipf("SKIPPED-CHECK: %s is closed to other users", path)
		}
	}
	open, closed := filepath.Join(dir, "open"), filepath.Join(dir, "closed")
	below, link := filepath.Join(closed, "below"), filepath.Join(dir, "link")
	for path, mode := range map[string]fs.FileMode{open: 0o755, closed: 0o700} {
		if err := os.Mkdir(path, mode); err != nil || os.Chmod(path, mode) != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(below, 0o755); err != nil || os.Symlink(below, link) != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{open: true, closed: false, below: false, link: false, filepath.Join(dir, "absent"): false} {
		if got := openToAll(path); got != want {
			t.Errorf("openToAll(%s) = %v", filepath.Base(path), got)
		}
	}
}

func TestUserOf(t *testing.T) {
	if uid, ok := userOf(os.Getpid()); !ok || uid != os.Geteuid() {
		t.Errorf("user %d, %v", uid, ok)
	}
	if _, ok := userOf(1 << 30); ok {
		t.Error("a process that is not there has a user")
	}
}
