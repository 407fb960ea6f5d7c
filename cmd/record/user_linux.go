package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/sample/probe"
)

// userOf returns the effective user of a process.
func userOf(pid int) (uid int, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if ids, found := strings.CutPrefix(line, "Uid:"); found && len(strings.Fields(ids)) > 1 {
			uid, err = strconv.Atoi(strings.Fields(ids)[1])
			return uid, err == nil
		}
	}
	return 0, false
}

// serveUser prepares the recording of another user's process, which only root may do: the
// socket and the probe must be where that user may reach them.
func (o *Options) serveUser(no func(what, remedy string) *Refusal) *Refusal {
	user, ok := userOf(o.PID)
	switch {
	case !ok:
		return no("there is no such process", "look for its number with ps or seedwalk doctor")
	case user == os.Geteuid():
		return nil
	case os.Geteuid() != 0:
		return no(fmt.Sprintf("it belongs to user %d", user), "run seedwalk as that user or as root")
	}
	o.user, o.Probe = user, "" // the tool's own folder may be closed to that user
	if !openToAll(o.SocketDir) {
		o.SocketDir = "/tmp"
	}
	return nil
}

// openToAll reports whether every user can open files below a folder.
func openToAll(dir string) bool {
	dir, err := filepath.EvalSymlinks(absolute(dir))
	for err == nil {
		var info os.FileInfo
		if info, err = os.Stat(dir); err != nil || info.Mode()&1 == 0 {
			return false
		}
		if dir == "/" {
			return true
		}
		dir = filepath.Dir(dir)
	}
	return false
}

// admit lets the processes of one other user connect, and load the probe beside the
// socket. The folder stays ours: its owner could put links into it, which would have us
// write or remove files in other places.
func (s *socket) admit(user int, p *private) error {
	s.user = user
	if err := os.Chmod(s.path, 0o600); err != nil {
		return err
	}
	if err := os.Lchown(s.path, user, -1); err != nil {
		return err
	}
	if err := os.Chmod(p.path(probe.LibraryName), 0o755); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Chmod(p.dir, 0o711)
}

// admits reports whether a process of that user may connect.
func (s *socket) admits(cred *unix.Ucred) bool {
	uid := int(cred.Uid)
	return uid == os.Geteuid() || uid == 0 || s.user != 0 && uid == s.user
}
