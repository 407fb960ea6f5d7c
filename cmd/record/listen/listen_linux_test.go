package listen

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// The socket belongs to the admitted user. The folder does not, so that user cannot put links
// into it.
func TestAdmit(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED-CHECK: only root gives files away")
	}
	const user = 65534
	s, p, err := New(tempdir.New(t))
	must.Do(t, err)
	defer p.Close()
	defer s.Close()
	library := p.Path(probe.LibraryName)
	must.Do(t, os.WriteFile(library, nil, 0o600))
	expect.True(t, !s.admits(&unix.Ucred{Uid: user}), "another user may connect before that is asked for")
	must.Do(t, s.Admit(user, p))
	for _, c := range []struct {
		path  string
		owner uint32
		mode  fs.FileMode
	}{
		{p.Dir, 0, 0o711}, {s.path, user, 0o600}, {library, 0, 0o755}, {p.Path(lockName), 0, 0o600},
	} {
		info := must.Get(os.Lstat(c.path))(t)
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != c.owner || info.Mode().Perm() != c.mode {
			t.Errorf("%s: user %d, mode %o; want %d, %o", filepath.Base(c.path), owner,
				info.Mode().Perm(), c.owner, c.mode)
		}
	}
	expect.True(t, s.admits(&unix.Ucred{Uid: user}) && !s.admits(&unix.Ucred{Uid: user - 1}),
		"others than the one user may connect, or that one may not")
}
