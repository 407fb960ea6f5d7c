// Package listen makes the private folder of a recording and accepts the connections of
// profilers.
//
// Sources: unix(7), credentials(7), flock(2), open(2) about O_PATH, proc(5) about /proc/self/fd.
//
// Glossary. The folder holds the socket, and the probe for the target.
//
// Strategy. On Linux a unix socket in the folder takes connections of our user, of root, and of one
// other user if requested. On Windows a port of this machine takes connections that send a secret. A
// lock in the folder shows that its tool lives. The next recording removes the folders of dead tools.
// On Linux the tool holds its folder open and reaches its files through that descriptor: the
// root user of a container may replace the folder by a link to a folder of the host.
//
// Known gaps: a folder of another user's tool is left to that user.
package listen

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/sample/probe"
)

// A recording has a directory of its own below the temporary one. It contains three files: the
// socket, an empty file that a profiler creates if it cannot work (RefusedName), and a lock file.
// The tool holds the lock until it ends. The next recording removes each directory whose lock
// is free.
const (
	privatePrefix = "seedwalk-run-"
	lockName      = "lock"
	socketName    = "socket"
	RefusedName   = "refused"
)

// Folder is the directory of one recording.
type Folder struct {
	Dir  string // its name, for the target and for messages
	held held   // the same directory, whatever becomes of its name
	lock *os.File
}

// NewFolder removes the directories of dead tools below parent, and makes one.
func NewFolder(parent string) (*Folder, error) {
	sweep(parent)
	dir, err := os.MkdirTemp(parent, privatePrefix) // mode 0700
	if err != nil {
		return nil, err
	}
	held, err := hold(dir)
	if err != nil {
		os.Remove(dir)
		return nil, err
	}
	lock, err := lockFile(held.path(lockName))
	if err != nil {
		held.Close()
		os.Remove(dir)
		return nil, err
	}
	return &Folder{dir, held, lock}, nil
}

// Path returns where this process reaches a file of the folder.
func (p *Folder) Path(name string) string { return p.held.path(name) }

// Named returns the path of a file of the folder by the folder's name.
func (p *Folder) Named(name string) string { return filepath.Join(p.Dir, name) }

// Create makes a file of the folder with this content, which every user may execute. It follows no link
// and replaces no file.
func (p *Folder) Create(name string, content []byte) error {
	f, err := os.OpenFile(p.Path(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Chmod(0o755), f.Close()) // whatever the umask is
}

// Close removes the directory. The lock is removed last, so that no other process mistakes
// the directory for that of a dead tool.
func (p *Folder) Close() {
	p.held.removeKnown()
	p.lock.Close()
	os.Remove(p.Path(lockName))
	p.held.Close()
	os.Remove(p.Dir)
}

// sweep removes the directories of recordings whose tool is dead. It keeps a directory
// without a lock file, because a tool may be creating it.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), privatePrefix) { // no symbolic links
			continue
		}
		dir := filepath.Join(parent, e.Name())
		held, err := hold(dir)
		if err != nil {
			continue
		}
		if dead(held.path(lockName)) {
			held.removeKnown()
			os.Remove(held.path(lockName))
			os.Remove(dir) // fails if there are other files
		}
		held.Close()
	}
}

// removeKnown removes the files that a recording makes, and no others.
func (h held) removeKnown() {
	for _, name := range []string{socketName, RefusedName, probe.LibraryName} {
		os.Remove(h.path(name))
	}
}

// Stream is a connection that can be half closed.
type Stream interface {
	net.Conn
	CloseWrite() error
}
