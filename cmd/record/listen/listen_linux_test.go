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
	must.Do(t, p.Create(probe.LibraryName, nil))
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

// The root user of a container can replace the folder by a link to a folder of the host. The tool does not
// change the files there.
func TestReplacedFolder(t *testing.T) {
	parent := tempdir.New(t)
	s, p, err := New(parent)
	must.Do(t, err)
	host := filepath.Join(parent, "host")
	must.Do(t, os.Rename(p.Dir, filepath.Join(parent, "aside")))
	must.Do(t, os.Mkdir(host, 0o700))
	must.Do(t, os.Symlink(host, p.Dir))
	names := []string{socketName, lockName, RefusedName, probe.LibraryName}
	for _, name := range names {
		must.Do(t, os.WriteFile(filepath.Join(host, name), []byte("the host's"), 0o640))
	}
	must.Do(t, p.Create(probe.LibraryName, []byte("probe")))
	if os.Geteuid() == 0 { // only root gives files away
		must.Do(t, s.Admit(65534, p))
	}
	s.Close()
	p.Close()
	for _, name := range names {
		file := filepath.Join(host, name)
		expect.Equal(t, string(must.Get(os.ReadFile(file))(t)), "the host's", name)
		info := must.Get(os.Lstat(file))(t)
		expect.Equal(t, info.Mode().Perm(), 0o640, name)
		expect.Equal(t, int(info.Sys().(*syscall.Stat_t).Uid), os.Geteuid(), name)
	}
}

// A link that waits in the folder under the probe's name is not followed.
func TestCreateFollowsNoLink(t *testing.T) {
	parent := tempdir.New(t)
	p := must.Get(NewFolder(parent))(t)
	defer p.Close()
	victim := filepath.Join(parent, "victim")
	must.Do(t, os.WriteFile(victim, []byte("the host's"), 0o640))
	must.Do(t, os.Symlink(victim, p.Named(probe.LibraryName)))
	if err := p.Create(probe.LibraryName, []byte("probe")); !os.IsExist(err) {
		t.Error(err)
	}
	expect.Equal(t, string(must.Get(os.ReadFile(victim))(t)), "the host's")
}
